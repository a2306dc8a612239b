// translate: #property script_show_input is unknown
#property script_show_input
void OnStart()
  {
   Print(1);
  }
