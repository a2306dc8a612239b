//+------------------------------------------------------------------+
//| Stream.mqh - bytes to and from another program over a native     |
//| socket                                                           |
//| For scripts, Expert Advisors and services; no DLL. Every wait    |
//| ends at the deadline and asks IsStopped(); after any error the   |
//| connection is closed, so that half a message is never read on.   |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_STREAM_MQH
#define MTBRIDGE_STREAM_MQH

#include <MtBridge/Errors.mqh>

#define MTB_CHUNK    65536               // most bytes of one read or send
#define MTB_SLICE_MS 50                  // longest wait without IsStopped()
#define MTB_BLOCK_MS 2500                // longest one call may block: a stopped program is killed after 3 s
//+------------------------------------------------------------------+
//| One connection to one address.                                   |
//+------------------------------------------------------------------+
class CMtbStream
  {
private:
   int               m_socket;
   string            m_host;
   uint              m_port;
   ulong             m_deadline;         // by GetTickCount64
   uint              m_timeout;          // what it was made of, for messages
   ENUM_MTB_ERROR    m_error;
   string            m_text;
   uchar             m_out[];            // waits to be sent
   int               m_out_size;
   uchar             m_in[];             // was read and not yet used
   int               m_in_at;
   int               m_in_size;

   bool              FailStopped(void);
   bool              FailTimeout(void);
   bool              FailLost(const int code);
   bool              Fill(void);

protected:
   bool              Fail(const ENUM_MTB_ERROR error,const string text);
   string            Place(void) const;
   bool              OpenSocket(const string host,const uint port);
   bool              PutBytes(const uchar &data[]);
   bool              Flush(void);
   bool              Take(uchar &data[],const int count);
   bool              Drop(const ulong count);

public:
                     CMtbStream(void);
                    ~CMtbStream(void);
   void              Deadline(const uint timeout_ms);
   uint              Remaining(void) const;
   bool              IsOpen(void) const { return(m_socket!=INVALID_HANDLE); }
   void              Close(void);
   ENUM_MTB_ERROR    Error(void) const { return(m_error); }
   string            Text(void) const { return(m_text); }
  };
//+------------------------------------------------------------------+
//| Not connected yet.                                               |
//+------------------------------------------------------------------+
CMtbStream::CMtbStream(void) : m_socket(INVALID_HANDLE),m_host(""),m_port(0),m_deadline(0),m_timeout(0),
   m_error(MTB_ERROR_NONE),m_text(""),m_out_size(0),m_in_at(0),m_in_size(0)
  {
  }
//+------------------------------------------------------------------+
//| A program may hold 128 sockets at most.                          |
//+------------------------------------------------------------------+
CMtbStream::~CMtbStream(void)
  {
   Close();
  }
//+------------------------------------------------------------------+
//| Close the socket and forget what was read. A refused close only  |
//| says that the terminal has closed it already.                    |
//+------------------------------------------------------------------+
void CMtbStream::Close(void)
  {
   if(m_socket!=INVALID_HANDLE && !SocketClose(m_socket))
      ResetLastError();
   m_socket=INVALID_HANDLE;
   m_out_size=0;
   m_in_at=0;
   m_in_size=0;
  }
//+------------------------------------------------------------------+
//| Every later wait ends this many milliseconds from now.           |
//+------------------------------------------------------------------+
void CMtbStream::Deadline(const uint timeout_ms)
  {
   m_timeout=timeout_ms;
   m_deadline=GetTickCount64()+timeout_ms;
  }
//+------------------------------------------------------------------+
//| Milliseconds to the deadline, 0 when it has passed.              |
//+------------------------------------------------------------------+
uint CMtbStream::Remaining(void) const
  {
   ulong now=GetTickCount64();
   return(now<m_deadline ? (uint)(m_deadline-now) : 0);
  }
//+------------------------------------------------------------------+
//| The other side, as people write it.                              |
//+------------------------------------------------------------------+
string CMtbStream::Place(void) const
  {
   return(StringFormat("%s:%u",m_host,m_port));
  }
//+------------------------------------------------------------------+
//| Remember the reason and close.                                   |
//+------------------------------------------------------------------+
bool CMtbStream::Fail(const ENUM_MTB_ERROR error,const string text)
  {
   m_error=error;
   m_text=text;
   Close();
   return(false);
  }
//+------------------------------------------------------------------+
//| The user removed the program or closes the terminal.             |
//+------------------------------------------------------------------+
bool CMtbStream::FailStopped(void)
  {
   return(Fail(MTB_ERROR_STOPPED,"The program was stopped while it waited for "+Place()+"."));
  }
//+------------------------------------------------------------------+
//| The deadline has passed.                                         |
//+------------------------------------------------------------------+
bool CMtbStream::FailTimeout(void)
  {
   return(Fail(MTB_ERROR_TIMEOUT,StringFormat("%s gave no answer within %u ms: raise the timeout, or see whether an mtbridge worker listens there.",
                                              Place(),m_timeout)));
  }
//+------------------------------------------------------------------+
//| The other side went away.                                        |
//+------------------------------------------------------------------+
bool CMtbStream::FailLost(const int code)
  {
   return(Fail(MTB_ERROR_LOST,StringFormat("The connection to %s broke (error %d): see whether the worker still runs, and start it again.",
                                           Place(),code)));
  }
//+------------------------------------------------------------------+
//| Connect before the deadline.                                     |
//+------------------------------------------------------------------+
bool CMtbStream::OpenSocket(const string host,const uint port)
  {
   Close();
   m_host=host;
   m_port=port;
   m_error=MTB_ERROR_NONE;
   m_text="";
   uint timeout=Remaining();
   if(timeout==0)
      return(FailTimeout());
   ResetLastError();
   m_socket=SocketCreate(SOCKET_DEFAULT);
   if(m_socket==INVALID_HANDLE)
     {
      int code=GetLastError();
      return(Fail(code==MTB_CODE_NOT_ALLOWED ? MTB_ERROR_NOT_ALLOWED : MTB_ERROR_NO_WORKER,MtbConnectText(code,host,port)));
     }
//--- the one wait that cannot be cut in slices
   if(!SocketConnect(m_socket,host,port,MathMin(timeout,(uint)MTB_BLOCK_MS)))
     {
      int code=GetLastError();
      return(Fail(code==MTB_CODE_NOT_ALLOWED ? MTB_ERROR_NOT_ALLOWED : MTB_ERROR_NO_WORKER,MtbConnectText(code,host,port)));
     }
//--- without this the terminal waits for ever
   if(!SocketTimeouts(m_socket,MTB_BLOCK_MS,MTB_BLOCK_MS))
      return(FailLost(GetLastError()));
   return(true);
  }
//+------------------------------------------------------------------+
//| Small pieces are gathered into one send: many small ones would   |
//| each wait for the other side's acknowledgement.                  |
//+------------------------------------------------------------------+
bool CMtbStream::PutBytes(const uchar &data[])
  {
   if(ArraySize(m_out)<MTB_CHUNK && ArrayResize(m_out,MTB_CHUNK)!=MTB_CHUNK)
      return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left to send from."));
   int size=ArraySize(data);
   int at=0;
   while(at<size)
     {
      int n=MathMin(size-at,MTB_CHUNK-m_out_size);
      if(ArrayCopy(m_out,data,m_out_size,at,n)!=n)
         return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left to send from."));
      m_out_size+=n;
      at+=n;
      if(m_out_size==MTB_CHUNK && !Flush())
         return(false);
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| Send what waits. SocketSend may take a part, and always begins   |
//| at index 0: the rest is copied to the front.                     |
//+------------------------------------------------------------------+
bool CMtbStream::Flush(void)
  {
   uchar rest[];
   while(m_out_size>0)
     {
      if(IsStopped())
         return(FailStopped());
      if(Remaining()==0)
         return(FailTimeout());
      if(!SocketIsWritable(m_socket))
        {
         if(!SocketIsConnected(m_socket))
            return(FailLost(GetLastError()));
         Sleep(1);
         continue;
        }
      int sent=SocketSend(m_socket,m_out,(uint)m_out_size);
      if(sent<0 || sent>m_out_size)
         return(FailLost(GetLastError()));
      int left=m_out_size-sent;
      if(left>0 && sent>0 && (ArrayCopy(rest,m_out,0,sent,left)!=left || ArrayCopy(m_out,rest,0,0,left)!=left))
         return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left to send from."));
      m_out_size=left;
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| Read some bytes. Never asks for more than SocketIsReadable has   |
//| promised, so a SocketRead that waits for its whole length cannot |
//| stall; an empty socket may promise 1, so the wait is a slice.    |
//+------------------------------------------------------------------+
bool CMtbStream::Fill(void)
  {
   m_in_at=0;
   m_in_size=0;
   while(!IsStopped())
     {
      uint remaining=Remaining();
      if(remaining==0)
         return(FailTimeout());
      ResetLastError();
      uint ready=SocketIsReadable(m_socket);
      if(ready>0)
        {
         //--- emptied first: the reference lets SocketRead enlarge it
         if(ArrayResize(m_in,0)!=0)
            return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left to read into."));
         int got=SocketRead(m_socket,m_in,MathMin(ready,(uint)MTB_CHUNK),MathMin(remaining,(uint)MTB_SLICE_MS));
         if(got>0)
           {
            m_in_size=MathMin(got,ArraySize(m_in));
            return(true);
           }
        }
      if(!SocketIsConnected(m_socket))
         return(FailLost(GetLastError()));
      if(ready==0)
         Sleep(1);
     }
   return(FailStopped());
  }
//+------------------------------------------------------------------+
//| Exactly count bytes into data; the caller has checked count.     |
//+------------------------------------------------------------------+
bool CMtbStream::Take(uchar &data[],const int count)
  {
   if(ArrayResize(data,count)!=count)
      return(Fail(MTB_ERROR_TOO_LARGE,StringFormat("There is no memory left for a frame of %d bytes.",count)));
   int at=0;
   while(at<count)
     {
      if(m_in_at==m_in_size && !Fill())
         return(false);
      int n=MathMin(count-at,m_in_size-m_in_at);
      if(ArrayCopy(data,m_in,at,m_in_at,n)!=n)
         return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left to read into."));
      m_in_at+=n;
      at+=n;
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| Read count bytes and forget them.                                |
//+------------------------------------------------------------------+
bool CMtbStream::Drop(const ulong count)
  {
   ulong left=count;
   while(left>0)
     {
      if(m_in_at==m_in_size && !Fill())
         return(false);
      int n=(int)MathMin(left,(ulong)(m_in_size-m_in_at));
      m_in_at+=n;
      left-=(ulong)n;
     }
   return(true);
  }
#endif
//+------------------------------------------------------------------+
