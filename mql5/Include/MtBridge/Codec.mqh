//+------------------------------------------------------------------+
//| Codec.mqh - requests to frames, frames to replies (protocol 1)   |
//| Calls nothing of the terminal. docs/protocol.md is the contract. |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_CODEC_MQH
#define MTBRIDGE_CODEC_MQH

#include <MtBridge/Bytes.mqh>
#include <MtBridge/Protocol.mqh>
//+------------------------------------------------------------------+
//| A request while it is put together: Begin, then one call an      |
//| array, then Head.                                                |
//+------------------------------------------------------------------+
class CMtbRequest
  {
private:
   uint              m_operation;
   MtbArray          m_arrays[];

   int               Add(const uint role,const uint dtype,const int rows,const int cols,const int bytes);

public:
   string            options;            // JSON object or nothing
   MtbFrame          frames[];           // in the order of the calls

                     CMtbRequest(void);
   void              Begin(const uint operation,const string json);
   bool              Matrix(const uint role,const double &values[],const int rows,const int cols);
   bool              Vector(const uint role,const double &values[]);
   bool              Text(const uint role,const string text);
   bool              Head(const ulong request,const uint deadline_ms,uchar &data[]) const;
   int               Arrays(void) const { return(ArraySize(m_arrays)); }
   string            Excess(const ulong rows,const ulong columns,const ulong frame_bytes) const;
  };
//+------------------------------------------------------------------+
//| Begin must still say what is asked for.                          |
//+------------------------------------------------------------------+
CMtbRequest::CMtbRequest(void) : m_operation(0),options("")
  {
  }
//+------------------------------------------------------------------+
//| Start again with another operation and no arrays.                |
//+------------------------------------------------------------------+
void CMtbRequest::Begin(const uint operation,const string json)
  {
   m_operation=operation;
   options=json;
   ArrayFree(m_arrays);
   ArrayFree(frames);
  }
//+------------------------------------------------------------------+
//| Append a descriptor and an empty frame; its index or -1.         |
//+------------------------------------------------------------------+
int CMtbRequest::Add(const uint role,const uint dtype,const int rows,const int cols,const int bytes)
  {
   int at=ArraySize(m_arrays);
   if(at>=MTB_MAX_ARRAYS || ArrayResize(m_arrays,at+1)!=at+1 || ArrayResize(frames,at+1)!=at+1)
      return(-1);
   m_arrays[at].role=role;
   m_arrays[at].dtype=dtype;
   m_arrays[at].dims=(cols>0 ? 2 : 1);
   m_arrays[at].order=0;
   for(int i=0; i<MTB_MAX_DIMS; i++)
      m_arrays[at].shape[i]=0;
   m_arrays[at].shape[0]=(ulong)rows;
   if(cols>0)
      m_arrays[at].shape[1]=(ulong)cols;
   m_arrays[at].bytes=(ulong)bytes;
   return(at);
  }
//+------------------------------------------------------------------+
//| Append a rows x cols matrix, row after row; false when the sizes |
//| disagree or there is no room.                                    |
//+------------------------------------------------------------------+
bool CMtbRequest::Matrix(const uint role,const double &values[],const int rows,const int cols)
  {
   if(rows<=0 || cols<=0 || (long)ArraySize(values)!=(long)rows*cols || ArraySize(values)>INT_MAX/8)
      return(false);
   int at=Add(role,MTB_FLOAT64,rows,cols,ArraySize(values)*8);
   return(at>=0 && MtbPackDoubles(values,frames[at].data));
  }
//+------------------------------------------------------------------+
//| Append numbers of one dimension, such as weights.                |
//+------------------------------------------------------------------+
bool CMtbRequest::Vector(const uint role,const double &values[])
  {
   int count=ArraySize(values);
   if(count<1 || count>INT_MAX/8)
      return(false);
   int at=Add(role,MTB_FLOAT64,count,0,count*8);
   return(at>=0 && MtbPackDoubles(values,frames[at].data));
  }
//+------------------------------------------------------------------+
//| Append text, such as symbols one a line.                         |
//+------------------------------------------------------------------+
bool CMtbRequest::Text(const uint role,const string text)
  {
   uchar data[];
   if(StringLen(text)==0 || !MtbPackText(text,data))
      return(false);
   int size=ArraySize(data);
   int at=Add(role,MTB_UINT8,size,0,size);
   return(at>=0 && ArrayCopy(frames[at].data,data)==size);
  }
//+------------------------------------------------------------------+
//| The head frame. A deadline of 0 means none.                      |
//+------------------------------------------------------------------+
bool CMtbRequest::Head(const ulong request,const uint deadline_ms,uchar &data[]) const
  {
   int arrays=ArraySize(m_arrays);
   int size=MTB_HEAD_BYTES+MTB_ARRAY_BYTES*arrays;
   if(ArrayResize(data,size)!=size)
      return(false);
   ArrayInitialize(data,0);
   MtbPutUInt(data,0,MTB_MAGIC,4);
   MtbPutUInt(data,4,MTB_VERSION,2);
   MtbPutUInt(data,6,(ulong)size,2);
   MtbPutUInt(data,8,MTB_KIND_REQUEST,2);
   MtbPutUInt(data,10,m_operation,2);
   MtbPutUInt(data,16,request,8);
   MtbPutUInt(data,40,deadline_ms,4);
   MtbPutUInt(data,46,1,2);
   MtbPutUInt(data,48,(ulong)arrays,2);
   for(int i=0; i<arrays; i++)
     {
      int at=MTB_HEAD_BYTES+MTB_ARRAY_BYTES*i;
      MtbPutUInt(data,at,m_arrays[i].role,2);
      MtbPutUInt(data,at+2,m_arrays[i].dtype,2);
      MtbPutUInt(data,at+4,m_arrays[i].dims,1);
      MtbPutUInt(data,at+5,m_arrays[i].order,1);
      for(int dim=0; dim<MTB_MAX_DIMS; dim++)
         MtbPutUInt(data,at+8+8*dim,m_arrays[i].shape[dim],8);
      MtbPutUInt(data,at+40,m_arrays[i].bytes,8);
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| What a worker with these limits would not take, in words; empty  |
//| when it takes all.                                               |
//+------------------------------------------------------------------+
string CMtbRequest::Excess(const ulong rows,const ulong columns,const ulong frame_bytes) const
  {
   for(int i=0; i<ArraySize(m_arrays); i++)
     {
      if(m_arrays[i].bytes<=frame_bytes && (m_arrays[i].dims<2 || (m_arrays[i].shape[0]<=rows && m_arrays[i].shape[1]<=columns)))
         continue;
      return(StringFormat("A matrix of %I64u rows, %I64u columns and %I64u bytes is more than the worker takes (%I64u rows, %I64u columns, %I64u bytes): send fewer bars or symbols.",
                          m_arrays[i].shape[0],m_arrays[i].shape[1],m_arrays[i].bytes,rows,columns,frame_bytes));
     }
   return("");
  }
//+------------------------------------------------------------------+
//| A reply: Head first, then frames[i] is filled with the bytes of  |
//| array i by whoever reads them, then Find and a getter.           |
//+------------------------------------------------------------------+
class CMtbReply
  {
private:
   MtbArray          m_arrays[];

   bool              Array(const uchar &data[],const int index);
   bool              Refuse(const string text);

public:
   uint              kind;
   uint              operation;
   uint              status;
   ulong             request;
   string            text;               // one sentence for people, may be empty
   string            fault;              // why the bytes are no reply
   MtbFrame          frames[];

                     CMtbReply(void);
   bool              Head(const uchar &data[]);
   int               Arrays(void) const { return(ArraySize(m_arrays)); }
   ulong             Bytes(const int index) const { return(m_arrays[index].bytes); }
   ulong             TotalBytes(void) const;
   int               Find(const uint role) const;
   bool              Matrix(const uint role,const int rows,const int cols,double &values[]);
   bool              Windows(const uint role,const int count,const int rows,const int cols,double &values[]);
   bool              Longs(const uint role,long &values[]);
   bool              Text(const uint role,string &value);
  };
//+------------------------------------------------------------------+
//| Head fills it.                                                   |
//+------------------------------------------------------------------+
CMtbReply::CMtbReply(void) : kind(0),operation(0),status(0),request(0),text(""),fault("")
  {
  }
//+------------------------------------------------------------------+
//| Note why the bytes are no reply.                                 |
//+------------------------------------------------------------------+
bool CMtbReply::Refuse(const string why)
  {
   fault=why;
   return(false);
  }
//+------------------------------------------------------------------+
//| Decode and check a head; nothing is allocated for its arrays.    |
//+------------------------------------------------------------------+
bool CMtbReply::Head(const uchar &data[])
  {
   int size=ArraySize(data);
   ArrayFree(m_arrays);
   ArrayFree(frames);
   text="";
   fault="";
   if(size<MTB_HEAD_BYTES)
      return(Refuse(StringFormat("its head has %d bytes instead of 64 or more",size)));
   if(MtbGetUInt(data,0,4)!=MTB_MAGIC)
      return(Refuse("its head does not begin with MTB1"));
   uint version=(uint)MtbGetUInt(data,4,2);
   if(version!=MTB_VERSION)
      return(Refuse(StringFormat("it speaks version %u of the protocol and this include version %d",version,MTB_VERSION)));
   int arrays=(int)MtbGetUInt(data,48,2);
   if(arrays>MTB_MAX_ARRAYS)
      return(Refuse(StringFormat("it announces %d arrays and %d are the most",arrays,MTB_MAX_ARRAYS)));
   int head_bytes=(int)MtbGetUInt(data,6,2);
   if(head_bytes!=size || size!=MTB_HEAD_BYTES+MTB_ARRAY_BYTES*arrays)
      return(Refuse(StringFormat("its head of %d bytes says %d for %d arrays",size,head_bytes,arrays)));
   kind=(uint)MtbGetUInt(data,8,2);
   if(kind!=MTB_KIND_RESULT && kind!=MTB_KIND_ERROR && kind!=MTB_KIND_PROGRESS)
      return(Refuse(StringFormat("a message of kind %u is no reply",kind)));
   operation=(uint)MtbGetUInt(data,10,2);
   status=(uint)MtbGetUInt(data,12,4);
   request=MtbGetUInt(data,16,8);
   if((kind==MTB_KIND_ERROR)==(status==0))
      return(Refuse(StringFormat("a message of kind %u cannot have the status %u",kind,status)));
//--- sessions and messages of several parts are not defined in version 1
   if(MtbGetUInt(data,24,8)!=0 || MtbGetUInt(data,32,8)!=0 || MtbGetUInt(data,44,2)!=0 || MtbGetUInt(data,46,2)!=1)
      return(Refuse("it belongs to a session or is a part of a message, which version 1 does not define"));
   uint flags=(uint)MtbGetUInt(data,50,2);
   if(flags!=0)
      return(Refuse(StringFormat("its flags %u are not defined in version 1",flags)));
   for(int i=52; i<MTB_HEAD_BYTES; i++)
      if(data[i]!=0)
         return(Refuse("its head has a byte that must be zero"));
   if(ArrayResize(m_arrays,arrays)!=arrays || ArrayResize(frames,arrays)!=arrays)
      return(Refuse("there is no memory for its arrays"));
   for(int i=0; i<arrays; i++)
      if(!Array(data,i))
         return(false);
   return(true);
  }
//+------------------------------------------------------------------+
//| Decode and check one descriptor; products cannot overflow.       |
//+------------------------------------------------------------------+
bool CMtbReply::Array(const uchar &data[],const int index)
  {
   int at=MTB_HEAD_BYTES+MTB_ARRAY_BYTES*index;
   m_arrays[index].role=(uint)MtbGetUInt(data,at,2);
   m_arrays[index].dtype=(uint)MtbGetUInt(data,at+2,2);
   m_arrays[index].dims=(uint)data[at+4];
   m_arrays[index].order=(uint)data[at+5];
   m_arrays[index].bytes=MtbGetUInt(data,at+40,8);
   uint  dims=m_arrays[index].dims;
   ulong item=(ulong)MtbItemBytes(m_arrays[index].dtype);
   if(item==0)
      return(Refuse(StringFormat("array %d has the unknown dtype %u",index,m_arrays[index].dtype)));
   if(dims<1 || dims>MTB_MAX_DIMS || m_arrays[index].order>1 || data[at+6]!=0 || data[at+7]!=0)
      return(Refuse(StringFormat("array %d has %u dimensions, order %u",index,dims,m_arrays[index].order)));
   ulong bytes=item;
   for(int dim=0; dim<MTB_MAX_DIMS; dim++)
     {
      ulong length=MtbGetUInt(data,at+8+8*dim,8);
      m_arrays[index].shape[dim]=length;
      if((uint)dim>=dims)
        {
         if(length!=0)
            return(Refuse(StringFormat("array %d has a length in a dimension that it does not use",index)));
         continue;
        }
      if(length>INT_MAX || bytes*length>INT_MAX)
         return(Refuse(StringFormat("array %d is larger than an MQL5 array can be",index)));
      bytes*=length;
     }
   if(bytes!=m_arrays[index].bytes)
      return(Refuse(StringFormat("array %d says %I64u bytes and its shape makes %I64u",index,m_arrays[index].bytes,bytes)));
   return(true);
  }
//+------------------------------------------------------------------+
//| Bytes of all arrays together; at most 16 times INT_MAX.          |
//+------------------------------------------------------------------+
ulong CMtbReply::TotalBytes(void) const
  {
   ulong total=0;
   for(int i=0; i<ArraySize(m_arrays); i++)
      total+=m_arrays[i].bytes;
   return(total);
  }
//+------------------------------------------------------------------+
//| Index of the first array of that role whose bytes are here, -1   |
//| when there is none.                                              |
//+------------------------------------------------------------------+
int CMtbReply::Find(const uint role) const
  {
   for(int i=0; i<ArraySize(m_arrays); i++)
      if(m_arrays[i].role==role && (ulong)ArraySize(frames[i].data)==m_arrays[i].bytes)
         return(i);
   return(-1);
  }
//+------------------------------------------------------------------+
//| The matrix of that role, row after row whatever its order was.   |
//+------------------------------------------------------------------+
bool CMtbReply::Matrix(const uint role,const int rows,const int cols,double &values[])
  {
   int i=Find(role);
   if(i<0 || m_arrays[i].dtype!=MTB_FLOAT64 || m_arrays[i].dims!=2 ||
      m_arrays[i].shape[0]!=(ulong)rows || m_arrays[i].shape[1]!=(ulong)cols)
      return(Refuse(StringFormat("it holds no %d x %d matrix of doubles",rows,cols)));
   if(m_arrays[i].order==0)
      return(MtbUnpackDoubles(frames[i].data,values) || Refuse("there is no memory for its matrix"));
   double columns[];
   if(!MtbUnpackDoubles(frames[i].data,columns) || ArrayResize(values,rows*cols)!=rows*cols)
      return(Refuse("there is no memory for its matrix"));
   for(int r=0; r<rows; r++)
      for(int c=0; c<cols; c++)
         values[r*cols+c]=columns[c*rows+r];
   return(true);
  }
//+------------------------------------------------------------------+
//| count matrices of rows x cols, one after the other. A side of 1  |
//| may have no dimension of its own.                                |
//+------------------------------------------------------------------+
bool CMtbReply::Windows(const uint role,const int count,const int rows,const int cols,double &values[])
  {
   int   i=Find(role);
   ulong length=(ulong)count*(ulong)rows*(ulong)cols;
   if(i<0 || m_arrays[i].dtype!=MTB_FLOAT64 || m_arrays[i].shape[0]!=(ulong)count || m_arrays[i].bytes!=8*length || (m_arrays[i].dims>1 && m_arrays[i].order!=0))
      return(Refuse(StringFormat("it holds no %d times %d x %d doubles",count,rows,cols)));
   return(MtbUnpackDoubles(frames[i].data,values) || Refuse("there is no memory for its numbers"));
  }
//+------------------------------------------------------------------+
//| The whole numbers of that role.                                  |
//+------------------------------------------------------------------+
bool CMtbReply::Longs(const uint role,long &values[])
  {
   int i=Find(role);
   if(i<0 || m_arrays[i].dtype!=MTB_INT64)
      return(Refuse("it holds no whole numbers where they should be"));
   return(MtbUnpackLongs(frames[i].data,values) || Refuse("there is no memory for its numbers"));
  }
//+------------------------------------------------------------------+
//| The text of that role.                                           |
//+------------------------------------------------------------------+
bool CMtbReply::Text(const uint role,string &value)
  {
   int i=Find(role);
   if(i<0 || m_arrays[i].dtype!=MTB_UINT8)
      return(Refuse("it holds no text where it should be"));
   value=MtbUnpackText(frames[i].data);
   return(true);
  }
#endif
//+------------------------------------------------------------------+
