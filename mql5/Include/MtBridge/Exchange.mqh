//+------------------------------------------------------------------+
//| Exchange.mqh - finds the worker, sends it one request at a time  |
//| and receives the reply                                           |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_EXCHANGE_MQH
#define MTBRIDGE_EXCHANGE_MQH

#include <MtBridge/Codec.mqh>
#include <MtBridge/Errors.mqh>
#include <MtBridge/Zmtp.mqh>

#define MTB_TEXT_BYTES  65536            // longest sentence of a reply
#define MTB_PING_BYTES  65536            // most bytes of the answer to a ping
#define MTB_RETRY_MS    5000             // pause between attempts to find a worker
//+------------------------------------------------------------------+
//| What a worker said about itself.                                 |
//+------------------------------------------------------------------+
struct MtbWorker
  {
   string            program;            // such as mtbridge 0.1.0
   string            engine;
   string            device;
   ulong             frame_bytes;        // its limits
   ulong             frames;
   ulong             rows;
   ulong             columns;
  };
//+------------------------------------------------------------------+
//| One connection, one call at a time.                              |
//+------------------------------------------------------------------+
class CMtbExchange
  {
private:
   CMtbZmtp          m_zmtp;
   string            m_host;
   uint              m_port;
   uint              m_timeout;          // milliseconds of a whole call
   ulong             m_request;          // number of the last request
   ulong             m_retry_at;         // no attempt before, by GetTickCount64
   ENUM_MTB_ERROR    m_retry_error;      // what the last attempt gave
   string            m_retry_text;
   ENUM_MTB_ERROR    m_error;
   uint              m_status;
   string            m_text;
   string            m_note;

   bool              FailTransport(void);
   bool              Open(void);
   bool              Introduce(void);
   string            Excess(const CMtbRequest &request) const;
   bool              CheckLimits(const CMtbRequest &request);
   bool              Transfer(CMtbRequest &request,CMtbReply &reply,const ulong most_bytes);
   bool              SendRequest(CMtbRequest &request,const ulong number);
   bool              ReceiveReply(CMtbReply &reply,const ulong number,const ulong most_bytes);
   bool              ReceiveBody(CMtbReply &reply,const ulong most_bytes,bool more);

protected:
   MtbWorker         m_worker;

   bool              Fail(const ENUM_MTB_ERROR error,const string text);
   void              Start(void);
   bool              Exchange(CMtbRequest &request,CMtbReply &reply,const ulong most_bytes);
   string            Place(void) const { return(StringFormat("%s:%u",m_host,m_port)); }

public:
                     CMtbExchange(void);
   bool              Connect(const string host,const uint port,const uint timeout_ms);
   void              Close(void) { m_zmtp.Close(); }
   bool              Ping(MtbWorker &worker);
//--- about the last call
   string            Error(void) const { return(m_text); }
   ENUM_MTB_ERROR    ErrorKind(void) const { return(m_error); }
   uint              Status(void) const { return(m_status); }
   string            Note(void) const { return(m_note); }
  };
//+------------------------------------------------------------------+
//| What the numbers of the requests begin with: another value in    |
//| every program, so that a reply to an earlier one is never taken  |
//| for one to this. It is no secret, and MathRand stays as the      |
//| program has seeded it. Two bits are left to count on.            |
//+------------------------------------------------------------------+
ulong MtbFirstRequest(void)
  {
   const ulong factor=6364136223846793005; // odd and without pattern: spreads each bit upwards
//--- the second, the moment since the system's start, and how long this program has run
   ulong       mixed=((((ulong)TimeLocal()*factor)^GetTickCount64())*factor)^GetMicrosecondCount();
   for(int i=0; i<2; i++)
      mixed=(mixed^(mixed>>29))*factor;
   return(mixed>>2);
  }
//+------------------------------------------------------------------+
//| The worker's usual address.                                      |
//+------------------------------------------------------------------+
CMtbExchange::CMtbExchange(void) : m_host("127.0.0.1"),m_port(5555),m_timeout(10000),m_request(MtbFirstRequest()),m_retry_at(0),m_retry_error(MTB_ERROR_NONE),
   m_retry_text(""),m_error(MTB_ERROR_NONE),m_status(0),m_text(""),m_note("")
  {
   m_worker.program="";
   m_worker.engine="";
   m_worker.device="";
   m_worker.frame_bytes=0;
   m_worker.frames=0;
   m_worker.rows=0;
   m_worker.columns=0;
  }
//+------------------------------------------------------------------+
//| Remember what went wrong.                                        |
//+------------------------------------------------------------------+
bool CMtbExchange::Fail(const ENUM_MTB_ERROR error,const string text)
  {
   m_error=error;
   m_text=text;
   return(false);
  }
//+------------------------------------------------------------------+
//| The same for what the connection says; it is closed by then.     |
//+------------------------------------------------------------------+
bool CMtbExchange::FailTransport(void)
  {
   return(Fail(m_zmtp.Error(),m_zmtp.Text()));
  }
//+------------------------------------------------------------------+
//| Forget the last call and start the clock of this one.            |
//+------------------------------------------------------------------+
void CMtbExchange::Start(void)
  {
   m_error=MTB_ERROR_NONE;
   m_status=MTB_STATUS_OK;
   m_text="";
   m_note="";
   m_zmtp.Deadline(m_timeout);
  }
//+------------------------------------------------------------------+
//| Find the worker and ask for its limits; a call does the same     |
//| later by itself when the connection is gone.                     |
//+------------------------------------------------------------------+
bool CMtbExchange::Connect(const string host,const uint port,const uint timeout_ms)
  {
   m_zmtp.Close();
   m_retry_at=0;
   Start();
   if(StringLen(host)==0 || port<1 || port>65535 || timeout_ms<1)
      return(Fail(MTB_ERROR_ARGUMENT,StringFormat("'%s' port %u timeout %u ms is no address: give a host, a port of 1 to 65535 and a timeout of 1 ms or more.",
                                                  host,port,timeout_ms)));
   m_host=host;
   m_port=port;
   m_timeout=timeout_ms;
   m_zmtp.Deadline(m_timeout);
   return(Open());
  }
//+------------------------------------------------------------------+
//| Connect before the deadline that runs.                           |
//+------------------------------------------------------------------+
bool CMtbExchange::Open(void)
  {
   if(MQLInfoInteger(MQL_TESTER)!=0)
      return(Fail(MTB_ERROR_TESTER,"The strategy tester has no sockets: run the program on a chart to use the worker."));
   if(MQLInfoInteger(MQL_PROGRAM_TYPE)==PROGRAM_INDICATOR)
      return(Fail(MTB_ERROR_NOT_ALLOWED,MtbIndicatorText()));
//--- a refused connection may take seconds: do not pay for it at every call
   if(GetTickCount64()<m_retry_at)
      return(Fail(m_retry_error,m_retry_text));
   m_retry_at=0;
   if(m_zmtp.Connect(m_host,m_port) && Introduce())
      return(true);
   if(m_error==MTB_ERROR_NONE)
      FailTransport();
   m_zmtp.Close();
   if(m_error!=MTB_ERROR_STOPPED)
     {
      m_retry_at=GetTickCount64()+MTB_RETRY_MS;
      m_retry_error=m_error;
      m_retry_text=m_text;
     }
   return(false);
  }
//+------------------------------------------------------------------+
//| Ask who the worker is. Its limits matter: ZeroMQ cuts the        |
//| connection of a frame that is too large without a word.          |
//+------------------------------------------------------------------+
bool CMtbExchange::Introduce(void)
  {
   CMtbRequest request;
   CMtbReply   reply;
   request.Begin(MTB_PING,"");
   if(!Transfer(request,reply,MTB_PING_BYTES))
      return(false);
   long   limits[];
   string names="";
   string lines[];
   if(!reply.Longs(MTB_ROLE_RESULT,limits) || !reply.Text(MTB_ROLE_NAMES,names))
      return(Fail(MTB_ERROR_NOT_WORKER,"The answer of "+Place()+" to a ping is no answer ("+reply.fault+"): update both sides of mtbridge."));
   if(ArraySize(limits)<6 || StringSplit(names,'\n',lines)<3)
      return(Fail(MTB_ERROR_NOT_WORKER,"The answer of "+Place()+" to a ping is too short: update both sides of mtbridge."));
   if(limits[0]>MTB_VERSION || limits[1]<MTB_VERSION)
      return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("The worker speaks versions %I64d to %I64d of the protocol and this include version %d: update the older side.",
                                                    limits[0],limits[1],MTB_VERSION)));
   m_worker.frame_bytes=(ulong)limits[2];
   m_worker.frames=(ulong)limits[3];
   m_worker.rows=(ulong)limits[4];
   m_worker.columns=(ulong)limits[5];
   m_worker.program=lines[0];
   m_worker.engine=lines[1];
   m_worker.device=lines[2];
   return(true);
  }
//+------------------------------------------------------------------+
//| Is the worker there, and who is it?                              |
//+------------------------------------------------------------------+
bool CMtbExchange::Ping(MtbWorker &worker)
  {
   Start();
   bool done=(m_zmtp.IsOpen() && Introduce());
   if(!done && m_error!=MTB_ERROR_STOPPED && m_error!=MTB_ERROR_TIMEOUT)
     {
      m_error=MTB_ERROR_NONE;
      m_text="";
      done=Open();
     }
   if(done)
      worker=m_worker;
   return(done);
  }
//+------------------------------------------------------------------+
//| What is too large in a request, for the worker that was asked    |
//| last; empty when nothing is.                                     |
//+------------------------------------------------------------------+
string CMtbExchange::Excess(const CMtbRequest &request) const
  {
   return(request.Excess(m_worker.rows,m_worker.columns,m_worker.frame_bytes));
  }
//+------------------------------------------------------------------+
//| Refuse here what would only break the connection.                |
//+------------------------------------------------------------------+
bool CMtbExchange::CheckLimits(const CMtbRequest &request)
  {
   string excess=Excess(request);
   return(StringLen(excess)==0 || Fail(MTB_ERROR_TOO_LARGE,excess));
  }
//+------------------------------------------------------------------+
//| One request and its reply. A connection that was used before may |
//| have been dropped meanwhile; every operation only computes, so   |
//| the request goes out once more on a new connection. One that     |
//| breaks on a new connection is not repeated: it may be the cause. |
//| Every new connection has asked for the limits, so they are known |
//| before the first request and are those of this very worker.      |
//+------------------------------------------------------------------+
bool CMtbExchange::Exchange(CMtbRequest &request,CMtbReply &reply,const ulong most_bytes)
  {
   if(m_zmtp.IsOpen())
     {
      //--- ask again before a refusal: the worker may have been started anew with other limits
      if((StringLen(Excess(request))==0 || Introduce()) && CheckLimits(request) && Transfer(request,reply,most_bytes))
         return(true);
      if(m_error!=MTB_ERROR_LOST)
         return(false);
      m_error=MTB_ERROR_NONE;
      m_text="";
     }
   return(Open() && CheckLimits(request) && Transfer(request,reply,most_bytes));
  }
//+------------------------------------------------------------------+
//| The same on the connection that is there. A worker's refusal     |
//| keeps it; anything else has closed it.                           |
//+------------------------------------------------------------------+
bool CMtbExchange::Transfer(CMtbRequest &request,CMtbReply &reply,const ulong most_bytes)
  {
   m_request++;
   if(!SendRequest(request,m_request) || !ReceiveReply(reply,m_request,most_bytes))
     {
      if(m_error==MTB_ERROR_NONE)
         FailTransport();
      m_zmtp.Close();
      return(false);
     }
   m_note=reply.text;
   if(reply.kind==MTB_KIND_ERROR)
     {
      m_status=reply.status;
      string why=(StringLen(reply.text)>0 ? reply.text : MtbStatusText(reply.status));
      return(Fail(MTB_ERROR_REFUSED,StringFormat("The worker refused (status %u): %s",m_status,why)));
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| Delimiter, head, options, arrays. The worker is told how long we |
//| wait, so that it computes nothing for nobody.                    |
//+------------------------------------------------------------------+
bool CMtbExchange::SendRequest(CMtbRequest &request,const ulong number)
  {
   uchar head[];
   uchar options[];
   uchar delimiter[];
   if(!request.Head(number,m_zmtp.Remaining(),head) || !MtbPackText(request.options,options))
      return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left for a request."));
   int arrays=request.Arrays();
   if(!m_zmtp.Send(delimiter,true) || !m_zmtp.Send(head,true) || !m_zmtp.Send(options,arrays>0))
      return(false);
   for(int i=0; i<arrays; i++)
      if(!m_zmtp.Send(request.frames[i].data,i<arrays-1))
         return(false);
   return(true);
  }
//+------------------------------------------------------------------+
//| The reply of that number; late ones and progress are skipped.    |
//+------------------------------------------------------------------+
bool CMtbExchange::ReceiveReply(CMtbReply &reply,const ulong number,const ulong most_bytes)
  {
   uchar frame[];
   bool  more=false;
   while(!IsStopped())
     {
      if(!m_zmtp.Receive(frame,0,more))
         return(false);
      if(!more)
         return(Fail(MTB_ERROR_NOT_WORKER,Place()+" sent an empty message: see whether it is an mtbridge worker."));
      if(!m_zmtp.Receive(frame,MTB_HEAD_BYTES+MTB_ARRAY_BYTES*MTB_MAX_ARRAYS,more))
         return(false);
      if(!reply.Head(frame))
         return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("The reply of %s cannot be read: %s.",Place(),reply.fault)));
      //--- an error without a number: the worker could not read ours
      if((reply.request==number && reply.kind!=MTB_KIND_PROGRESS) || (reply.request==0 && reply.kind==MTB_KIND_ERROR))
         return(ReceiveBody(reply,most_bytes,more));
      while(more)
         if(!m_zmtp.Skip(more))
            return(false);
     }
   return(Fail(MTB_ERROR_STOPPED,"The program was stopped while it waited for the worker."));
  }
//+------------------------------------------------------------------+
//| Sentence and arrays. What the head announces is held against     |
//| what was asked for before there is any memory for it.            |
//+------------------------------------------------------------------+
bool CMtbExchange::ReceiveBody(CMtbReply &reply,const ulong most_bytes,bool more)
  {
   uchar text[];
   int   arrays=reply.Arrays();
   if(reply.TotalBytes()>most_bytes)
      return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("The reply of %s announces %I64u bytes where %I64u are the most: update both sides of mtbridge.",
                                                    Place(),reply.TotalBytes(),most_bytes)));
   if(!more)
      return(Fail(MTB_ERROR_NOT_WORKER,"The reply of "+Place()+" ends after its head: update both sides of mtbridge."));
   if(!m_zmtp.Receive(text,MTB_TEXT_BYTES,more))
      return(false);
   reply.text=MtbUnpackText(text);
   for(int i=0; i<arrays; i++)
     {
      if(!more)
         return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("The reply of %s ends after %d of %d arrays: update both sides of mtbridge.",
                                                       Place(),i,arrays)));
      if(!m_zmtp.Receive(reply.frames[i].data,(int)reply.Bytes(i),more))
         return(false);
      if((ulong)ArraySize(reply.frames[i].data)!=reply.Bytes(i))
         return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("Array %d of the reply of %s has %d bytes and not %I64u: update both sides of mtbridge.",
                                                       i,Place(),ArraySize(reply.frames[i].data),reply.Bytes(i))));
     }
   if(more)
      return(Fail(MTB_ERROR_NOT_WORKER,"The reply of "+Place()+" has more frames than its head says: update both sides of mtbridge."));
   return(true);
  }
#endif
//+------------------------------------------------------------------+
