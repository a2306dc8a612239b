// run: array out of range: index 3 of 3
void OnStart()
  {
   double a[3];
   ArrayInitialize(a,0.0);
   for(int i=0; i<=ArraySize(a); i++)
      a[i]=i;
  }
