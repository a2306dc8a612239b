// run: matrix index out of range
void OnStart()
  {
   matrix m;
   m.Init(2,2);
   m[2][0]=1.0;
  }
