// run: too few arguments
void OnStart()
  {
   PrintFormat("%d of %d",1);
  }
