// run: ended with an open socket
void OnStart()
  {
   int handle=SocketCreate(SOCKET_DEFAULT);
   Print(handle);
  }
