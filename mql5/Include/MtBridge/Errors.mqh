//+------------------------------------------------------------------+
//| Errors.mqh - what can go wrong, and the sentence that mends it   |
//| Every sentence says what happened and what to do about it.       |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_ERRORS_MQH
#define MTBRIDGE_ERRORS_MQH

#define MTB_CODE_NOT_ALLOWED   4014      // the terminal forbids the call or the address
#define MTB_CODE_TOO_MANY      5271      // 128 sockets are open already
#define MTB_CODE_NO_CONNECTION 5272      // nobody accepted the connection
//+------------------------------------------------------------------+
//| Where a call failed; MTB_ERROR_REFUSED has a status beside it.   |
//+------------------------------------------------------------------+
enum ENUM_MTB_ERROR
  {
   MTB_ERROR_NONE=0,
   MTB_ERROR_ARGUMENT,                   // sizes that the caller got wrong
   MTB_ERROR_TESTER,                     // no sockets in the strategy tester
   MTB_ERROR_NOT_ALLOWED,                // the terminal forbids the address
   MTB_ERROR_NO_WORKER,                  // nobody listens there
   MTB_ERROR_NOT_WORKER,                 // somebody else listens there
   MTB_ERROR_LOST,                       // the connection broke
   MTB_ERROR_TIMEOUT,                    // no answer in time
   MTB_ERROR_STOPPED,                    // the user ended the program
   MTB_ERROR_TOO_LARGE,                  // more than worker or terminal can hold
   MTB_ERROR_REFUSED                     // the worker said no, see the status
  };
//+------------------------------------------------------------------+
//| The status in the head of a reply; numbers of docs/protocol.md.  |
//+------------------------------------------------------------------+
enum ENUM_MTB_STATUS
  {
   MTB_STATUS_OK=0,
   MTB_STATUS_MALFORMED=1,
   MTB_STATUS_UNSUPPORTED=2,
   MTB_STATUS_TOO_LARGE=3,
   MTB_STATUS_BAD_SHAPE=4,
   MTB_STATUS_BAD_VALUE=5,
   MTB_STATUS_BAD_OPTIONS=6,
   MTB_STATUS_DEADLINE=7,
   MTB_STATUS_BUSY=8,
   MTB_STATUS_DEVICE=9,
   MTB_STATUS_STOPPING=10,
   MTB_STATUS_INTERNAL=11,
   MTB_STATUS_CANCELLED=12
  };
//+------------------------------------------------------------------+
//| Stands for the worker's sentence when it sent none.              |
//+------------------------------------------------------------------+
string MtbStatusText(const uint status)
  {
   switch(status)
     {
      case MTB_STATUS_MALFORMED:
         return("the request was damaged on its way: update both sides of mtbridge");
      case MTB_STATUS_UNSUPPORTED:
         return("the worker is older than this include: update it with pip install -U mtbridge");
      case MTB_STATUS_TOO_LARGE:
         return("the matrix is larger than the worker accepts: send fewer rows or columns");
      case MTB_STATUS_BAD_SHAPE:
         return("the sizes of the matrices do not fit each other");
      case MTB_STATUS_BAD_VALUE:
         return("a value is not what it must be: a missing number, times that do not increase, or a weight below 0");
      case MTB_STATUS_BAD_OPTIONS:
         return("an option of the request is not allowed");
      case MTB_STATUS_DEADLINE:
         return("the worker had no time left to compute it: raise the timeout");
      case MTB_STATUS_BUSY:
         return("the worker has too many requests waiting: try again later");
      case MTB_STATUS_DEVICE:
         return("the worker's device failed: see the worker's own messages");
      case MTB_STATUS_STOPPING:
         return("the worker is shutting down: start it again");
      case MTB_STATUS_INTERNAL:
         return("the worker failed inside: see the worker's own messages");
      case MTB_STATUS_CANCELLED:
         return("the request was cancelled");
     }
   return(StringFormat("the worker answered with the unknown status %u: update this include",status));
  }
//+------------------------------------------------------------------+
//| Why no connection was made. The reference does not say which     |
//| code a forbidden address gives, so 5272 names the list as well.  |
//+------------------------------------------------------------------+
string MtbConnectText(const int code,const string host,const uint port)
  {
   string place="Tools > Options > Expert Advisors > Allow WebRequest for listed URL";
   if(code==MTB_CODE_NOT_ALLOWED)
      return(StringFormat("The terminal does not allow connections to %s (error %d): add %s to %s.",host,code,host,place));
   if(code==MTB_CODE_NO_CONNECTION)
      return(StringFormat("Nobody answers at %s:%u (error %d): start the worker with 'mtbridge serve --bind tcp://%s:%u', and see that %s stands in %s.",
                          host,port,code,host,port,host,place));
   if(code==MTB_CODE_TOO_MANY)
      return(StringFormat("This program has too many open sockets (error %d): close clients that are no longer used.",code));
   return(StringFormat("The terminal could not open a connection to %s:%u (error %d): start the program again, then the terminal.",host,port,code));
  }
//+------------------------------------------------------------------+
//| The same for an indicator, where the terminal has no sockets.    |
//+------------------------------------------------------------------+
string MtbIndicatorText(void)
  {
   return("The terminal has no sockets for indicators: call the worker from a script, an Expert Advisor or a service.");
  }
#endif
//+------------------------------------------------------------------+
