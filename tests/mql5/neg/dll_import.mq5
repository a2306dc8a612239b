// translate: DLL imports are not translated
#import "libzmq.dll"
int zmq_errno(void);
#import
void OnStart()
  {
   Print(1);
  }
