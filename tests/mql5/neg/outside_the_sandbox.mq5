// run: leaves the folder MQL5/Files
void OnStart()
  {
   int handle=FileOpen("..\\secret.txt",FILE_WRITE|FILE_BIN);
   Print(handle);
  }
