// translate: the result of this call must be looked at
void OnStart()
  {
   uint none[];
   CLExecute(1,1,none,none,none);
  }
