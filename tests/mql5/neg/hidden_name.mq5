// compile: shadow
void OnStart()
  {
   int x=1;
   for(int i=0; i<2; i++)
     {
      int x=i;
      Print(x);
     }
   Print(x);
  }
