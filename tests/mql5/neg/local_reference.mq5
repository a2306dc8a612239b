// translate: a local reference
void OnStart()
  {
   int a=1;
   int &r=a;
   Print(r);
  }
