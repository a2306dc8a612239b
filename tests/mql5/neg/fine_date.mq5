// fine: 2024.01.02 03:04
void OnStart()
  {
   datetime when=D'2024.01.02 03:04:05';
   Print(TimeToString(when));
  }
