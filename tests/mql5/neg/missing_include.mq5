// translate: is not there
#include <MtBridge/NoSuchFile.mqh>
void OnStart()
  {
   Print(1);
  }
