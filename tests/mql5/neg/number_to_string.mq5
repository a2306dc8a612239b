// compile: string
void OnStart()
  {
   string s=5;
   Print(s);
  }
