// fine: later 7
void OnStart()
  {
   Later(7);
  }
void Later(const int n)
  {
   Print("later ",n);
  }
