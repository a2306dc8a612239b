//+------------------------------------------------------------------+
//| Zmtp.mqh - a ZeroMQ DEALER (ZMTP 3.0, NULL) on a stream          |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_ZMTP_MQH
#define MTBRIDGE_ZMTP_MQH

#include <MtBridge/Bytes.mqh>
#include <MtBridge/Stream.mqh>

#define ZMTP_MORE            0x01
#define ZMTP_LONG            0x02
#define ZMTP_COMMAND         0x04
#define ZMTP_GREETING_BYTES  64
#define ZMTP_SIGNATURE_BYTES 10
#define ZMTP_COMMAND_BYTES   4096        // no command of ZMTP 3 comes near
//+------------------------------------------------------------------+
//| One connection to a ROUTER or REP socket.                        |
//+------------------------------------------------------------------+
class CMtbZmtp : public CMtbStream
  {
private:
   bool              Greet(void);
   bool              Ready(void);
   bool              ReadyReply(const uchar &data[]);
   bool              Pong(const uchar &ping[]);
   bool              PutFrame(const uchar flags,const uchar &data[]);
   bool              FrameHead(uchar &flags,ulong &size);
   bool              NextMessageFrame(uchar &flags,ulong &size);

public:
   bool              Connect(const string host,const uint port);
   bool              Send(const uchar &data[],const bool more);
   bool              Receive(uchar &data[],const int limit,bool &more);
   bool              Skip(bool &more);
  };
//+------------------------------------------------------------------+
//| Connect and shake hands before the deadline.                     |
//+------------------------------------------------------------------+
bool CMtbZmtp::Connect(const string host,const uint port)
  {
   return(OpenSocket(host,port) && Greet() && Ready());
  }
//+------------------------------------------------------------------+
//| 64 bytes each way: signature, version, mechanism. Ours follows   |
//| when the other side's is known: libzmq hangs up on a wrong       |
//| mechanism before it has told its own.                            |
//+------------------------------------------------------------------+
bool CMtbZmtp::Greet(void)
  {
   uchar opening[];
   uchar signature[];
   uchar rest[];
   uchar mechanism[];
   uchar closing[];
   int   opening_bytes=ZMTP_SIGNATURE_BYTES+1;
   int   closing_bytes=ZMTP_GREETING_BYTES-opening_bytes;
   if(ArrayResize(opening,opening_bytes)!=opening_bytes || ArrayResize(closing,closing_bytes)!=closing_bytes || !MtbPackText("NULL",mechanism))
      return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left for a greeting."));
   ArrayInitialize(opening,0);
   opening[0]=0xFF;
   opening[9]=0x7F;
   opening[10]=3;
   if(!PutBytes(opening) || !Flush())
      return(false);
//--- a web server is known by its first bytes, and may send no more
   if(!Take(signature,ZMTP_SIGNATURE_BYTES))
      return(false);
   if(signature[0]!=0xFF || (signature[9]&0x01)==0)
      return(Fail(MTB_ERROR_NOT_WORKER,Place()+" is some other program, not ZeroMQ: give the port of an mtbridge worker."));
   if(!Take(rest,ZMTP_GREETING_BYTES-ZMTP_SIGNATURE_BYTES))
      return(false);
   if(rest[0]<3)
      return(Fail(MTB_ERROR_NOT_WORKER,Place()+" speaks an old ZeroMQ (before version 4): give the port of an mtbridge worker."));
   string wanted=CharArrayToString(rest,2,20,CP_UTF8);
   if(wanted=="CURVE" || wanted=="PLAIN" || wanted=="GSSAPI")
      return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("%s wants the security mechanism %s, which this include cannot do: give the port of an mtbridge worker.",
                                                    Place(),wanted)));
   if(wanted!="NULL")
      return(Fail(MTB_ERROR_NOT_WORKER,Place()+" sent a damaged ZeroMQ greeting: give the port of an mtbridge worker."));
//--- minor version 0, mechanism, not a server, filler
   ArrayInitialize(closing,0);
   ArrayCopy(closing,mechanism,1);
   return(PutBytes(closing) && Flush());
  }
//+------------------------------------------------------------------+
//| READY each way, with the types of the sockets.                   |
//+------------------------------------------------------------------+
bool CMtbZmtp::Ready(void)
  {
   uchar name[];
   uchar property[];
   uchar dealer[];
   uchar ready[];
   if(!MtbPackText("READY",name) || !MtbPackText("Socket-Type",property) || !MtbPackText("DEALER",dealer) || ArrayResize(ready,28)!=28)
      return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left for a command."));
   ArrayInitialize(ready,0);
   ready[0]=5;
   ArrayCopy(ready,name,1);
   ready[6]=11;
   ArrayCopy(ready,property,7);
   ready[21]=6;                          // big-endian length, 18..21
   ArrayCopy(ready,dealer,22);
   if(!PutFrame(ZMTP_COMMAND,ready) || !Flush())
      return(false);
   uchar flags=0;
   ulong size=0;
   uchar reply[];
   if(!FrameHead(flags,size))
      return(false);
   if((flags&ZMTP_COMMAND)==0 || size>ZMTP_COMMAND_BYTES)
      return(Fail(MTB_ERROR_NOT_WORKER,Place()+" broke the ZeroMQ handshake: give the port of an mtbridge worker."));
   return(Take(reply,(int)size) && ReadyReply(reply));
  }
//+------------------------------------------------------------------+
//| 5 'READY' then names (1 byte length) and values (4 bytes, big-   |
//| endian); only a ROUTER or REP can answer a request.              |
//+------------------------------------------------------------------+
bool CMtbZmtp::ReadyReply(const uchar &data[])
  {
   int size=ArraySize(data);
   if(size<6 || data[0]!=5 || CharArrayToString(data,1,5,CP_UTF8)!="READY")
      return(Fail(MTB_ERROR_NOT_WORKER,Place()+" refused the ZeroMQ handshake: give the port of an mtbridge worker."));
   string kind="";
   int    at=6;
   while(at<size)
     {
      int name_at=at+1;
      int name_size=(int)data[at];
      at=name_at+name_size;
      if(at+4>size)
         break;
      long value_size=((long)data[at]<<24)|((long)data[at+1]<<16)|((long)data[at+2]<<8)|(long)data[at+3];
      at+=4;
      if(value_size>size-at)
         break;
      if(name_size==11 && value_size>0 && CharArrayToString(data,name_at,11,CP_UTF8)=="Socket-Type")
         kind=CharArrayToString(data,at,(int)value_size,CP_UTF8);
      at+=(int)value_size;
     }
   if(kind!="ROUTER" && kind!="REP")
      return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("%s is a ZeroMQ socket of type '%s', not an mtbridge worker (ROUTER): give the worker's port.",
                                                    Place(),kind)));
   return(true);
  }
//+------------------------------------------------------------------+
//| Queue one frame of a message; the last one sends what waits.     |
//+------------------------------------------------------------------+
bool CMtbZmtp::Send(const uchar &data[],const bool more)
  {
   if(!IsOpen())
      return(Fail(MTB_ERROR_LOST,"The client is not connected: call Connect first."));
   if(!PutFrame((uchar)(more ? ZMTP_MORE : 0),data))
      return(false);
   return(more || Flush());
  }
//+------------------------------------------------------------------+
//| Flags, size in 1 or 8 bytes (big-endian), bytes.                 |
//+------------------------------------------------------------------+
bool CMtbZmtp::PutFrame(const uchar flags,const uchar &data[])
  {
   int   size=ArraySize(data);
   int   head_size=(size>255 ? 9 : 2);
   uchar head[];
   if(ArrayResize(head,head_size)!=head_size)
      return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left for a frame."));
   head[0]=(uchar)(size>255 ? flags|ZMTP_LONG : flags);
   int rest=size;
   for(int i=head_size-1; i>=1; i--)
     {
      head[i]=(uchar)(rest&0xFF);
      rest>>=8;
     }
   return(PutBytes(head) && PutBytes(data));
  }
//+------------------------------------------------------------------+
//| Flags and size of the next frame, of whatever kind.              |
//+------------------------------------------------------------------+
bool CMtbZmtp::FrameHead(uchar &flags,ulong &size)
  {
   uchar head[];
   uchar length[];
   if(!Take(head,1))
      return(false);
   flags=head[0];
   if((flags&~(ZMTP_MORE|ZMTP_LONG|ZMTP_COMMAND))!=0)
      return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("%s sent a frame with the unknown flags %u: see whether it is an mtbridge worker.",
                                                    Place(),(uint)flags)));
   if(!Take(length,(flags&ZMTP_LONG)!=0 ? 8 : 1))
      return(false);
   size=0;
   for(int i=0; i<ArraySize(length); i++)
      size=(size<<8)|(ulong)length[i];
   return(true);
  }
//+------------------------------------------------------------------+
//| The next frame of a message; commands between are answered.      |
//+------------------------------------------------------------------+
bool CMtbZmtp::NextMessageFrame(uchar &flags,ulong &size)
  {
   if(!IsOpen())
      return(Fail(MTB_ERROR_LOST,"The client is not connected: call Connect first."));
   uchar command[];
   while(FrameHead(flags,size))
     {
      if((flags&ZMTP_COMMAND)==0)
         return(true);
      if(size>ZMTP_COMMAND_BYTES)
         return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("%s sent a command of %I64u bytes: see whether it is an mtbridge worker.",Place(),size)));
      if(!Take(command,(int)size) || !Pong(command))
         return(false);
     }
   return(false);
  }
//+------------------------------------------------------------------+
//| 4 'PING', 2 bytes of time to live, context -> 4 'PONG', context; |
//| any other command asks for nothing.                              |
//+------------------------------------------------------------------+
bool CMtbZmtp::Pong(const uchar &ping[])
  {
   int size=ArraySize(ping);
   if(size<7 || ping[0]!=4 || CharArrayToString(ping,1,4,CP_UTF8)!="PING")
      return(true);
   uchar pong[];
   uchar name[];
   if(ArrayResize(pong,size-2)!=size-2 || !MtbPackText("PONG",name))
      return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left for a command."));
   pong[0]=4;
   ArrayCopy(pong,name,1);
   if(size>7)
      ArrayCopy(pong,ping,5,7,size-7);
   return(PutFrame(ZMTP_COMMAND,pong) && Flush());
  }
//+------------------------------------------------------------------+
//| One frame of a message. Its size is held against the limit       |
//| before there is any memory for it.                               |
//+------------------------------------------------------------------+
bool CMtbZmtp::Receive(uchar &data[],const int limit,bool &more)
  {
   uchar flags=0;
   ulong size=0;
   if(!NextMessageFrame(flags,size))
      return(false);
   if(size>(ulong)limit)
      return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("%s sent a frame of %I64u bytes where %d are the most: see whether it is an mtbridge worker.",
                                                    Place(),size,limit)));
   more=((flags&ZMTP_MORE)!=0);
   return(Take(data,(int)size));
  }
//+------------------------------------------------------------------+
//| The same for a frame that nobody wants.                          |
//+------------------------------------------------------------------+
bool CMtbZmtp::Skip(bool &more)
  {
   uchar flags=0;
   ulong size=0;
   if(!NextMessageFrame(flags,size))
      return(false);
   more=((flags&ZMTP_MORE)!=0);
   return(Drop(size));
  }
#endif
//+------------------------------------------------------------------+
