// translate: the result of this call must be looked at
void OnStart()
  {
   uchar data[];
   ArrayResize(data,5);
  }
