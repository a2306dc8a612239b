// compile: Prnt
void OnStart()
  {
   Prnt(1);
  }
