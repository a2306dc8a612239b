// run: %d got 8 bytes and needs I64
void OnStart()
  {
   long x=5000000000;
   PrintFormat("%d",x);
  }
