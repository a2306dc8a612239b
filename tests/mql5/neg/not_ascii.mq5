// translate: not ASCII
void OnStart()
  {
   Print("größer");
  }
