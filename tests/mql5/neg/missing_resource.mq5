// translate: is not there
#resource "\\Include\\MtBridge\\kernels\\no_such.cl" as string NoSuch
void OnStart()
  {
   Print(NoSuch);
  }
