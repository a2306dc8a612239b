//+------------------------------------------------------------------+
//| Protocol.mqh - the numbers of version 1, as docs/protocol.md has |
//| them                                                             |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_PROTOCOL_MQH
#define MTBRIDGE_PROTOCOL_MQH

#define MTB_MAGIC        0x3142544D      // "MTB1"
#define MTB_VERSION      1
#define MTB_HEAD_BYTES   64
#define MTB_ARRAY_BYTES  48
#define MTB_MAX_ARRAYS   16
#define MTB_MAX_DIMS     4
//+------------------------------------------------------------------+
//| What a message is.                                               |
//+------------------------------------------------------------------+
enum ENUM_MTB_KIND
  {
   MTB_KIND_REQUEST=1,
   MTB_KIND_RESULT=2,
   MTB_KIND_ERROR=3,
   MTB_KIND_PROGRESS=4,
   MTB_KIND_CANCEL=5
  };
//+------------------------------------------------------------------+
//| What is asked for.                                               |
//+------------------------------------------------------------------+
enum ENUM_MTB_OPERATION
  {
   MTB_PING=1,
   MTB_MULTIPLY=2,
   MTB_GRAM=3,
   MTB_COVARIANCE=4,
   MTB_CORRELATION=5,
   MTB_ROLLING=6,
   MTB_EXPANDING=7,
   MTB_EWM=8,
   MTB_LAGGED=9
  };
//+------------------------------------------------------------------+
//| What an array means.                                             |
//+------------------------------------------------------------------+
enum ENUM_MTB_ROLE
  {
   MTB_ROLE_A=1,
   MTB_ROLE_B=2,
   MTB_ROLE_DATA=3,
   MTB_ROLE_WEIGHTS=4,
   MTB_ROLE_SYMBOLS=6,
   MTB_ROLE_RESULT=8,
   MTB_ROLE_COUNTS=9,
   MTB_ROLE_NAMES=11
  };
//+------------------------------------------------------------------+
//| What its elements are.                                           |
//+------------------------------------------------------------------+
enum ENUM_MTB_DTYPE
  {
   MTB_FLOAT32=1,
   MTB_FLOAT64=2,
   MTB_INT64=3,
   MTB_UINT8=4
  };
//+------------------------------------------------------------------+
//| The 48 bytes that describe an array.                             |
//+------------------------------------------------------------------+
struct MtbArray
  {
   uint              role;
   uint              dtype;
   uint              dims;
   uint              order;              // 0 row after row, 1 column after column
   ulong             shape[MTB_MAX_DIMS];
   ulong             bytes;
  };
//+------------------------------------------------------------------+
//| The bytes of one frame (MQL5 has no array of arrays).            |
//+------------------------------------------------------------------+
struct MtbFrame
  {
   uchar             data[];
  };
//+------------------------------------------------------------------+
//| Bytes of an element; 0 for a dtype that is not known.            |
//+------------------------------------------------------------------+
int MtbItemBytes(const uint dtype)
  {
   switch(dtype)
     {
      case MTB_FLOAT32:
         return(4);
      case MTB_FLOAT64:
      case MTB_INT64:
         return(8);
      case MTB_UINT8:
         return(1);
     }
   return(0);
  }
#endif
//+------------------------------------------------------------------+
