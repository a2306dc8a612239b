// compile: sign
void OnStart()
  {
   uint size=5;
   for(int i=0; i<size; i++)
      Print(i);
  }
