//+------------------------------------------------------------------+
//| Bytes.mqh - numbers and text to little-endian bytes and back     |
//| Knows arrays and nothing of the terminal.                        |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_BYTES_MQH
#define MTBRIDGE_BYTES_MQH

#define MTB_BLOCK_NUMBERS 512
#define MTB_BLOCK_BYTES   4096
//+------------------------------------------------------------------+
//| The same 4 KB seen three ways. ArrayCopy converts values and     |
//| never bits, so the bits change their type in here.               |
//+------------------------------------------------------------------+
union MtbBlock
  {
   double            numbers[MTB_BLOCK_NUMBERS];
   long              integers[MTB_BLOCK_NUMBERS];
   uchar             bytes[MTB_BLOCK_BYTES];
  };
//+------------------------------------------------------------------+
//| Write the low bytes of a value; the place must exist already.    |
//+------------------------------------------------------------------+
void MtbPutUInt(uchar &data[],const int at,const ulong value,const int bytes)
  {
   ulong rest=value;
   for(int i=0; i<bytes; i++)
     {
      data[at+i]=(uchar)(rest&0xFF);
      rest>>=8;
     }
  }
//+------------------------------------------------------------------+
//| Read what MtbPutUInt wrote.                                      |
//+------------------------------------------------------------------+
ulong MtbGetUInt(const uchar &data[],const int at,const int bytes)
  {
   ulong value=0;
   for(int i=bytes-1; i>=0; i--)
      value=(value<<8)|(ulong)data[at+i];
   return(value);
  }
//+------------------------------------------------------------------+
//| Doubles to 8 bytes each; false when they find no room.           |
//+------------------------------------------------------------------+
bool MtbPackDoubles(const double &values[],uchar &bytes[])
  {
   int count=ArraySize(values);
   if(count>INT_MAX/8 || ArrayResize(bytes,count*8)!=count*8)
      return(false);
   MtbBlock block;
   for(int at=0; at<count; at+=MTB_BLOCK_NUMBERS)
     {
      int n=MathMin(MTB_BLOCK_NUMBERS,count-at);
      if(ArrayCopy(block.numbers,values,0,at,n)!=n || ArrayCopy(bytes,block.bytes,at*8,0,n*8)!=n*8)
         return(false);
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| 8 bytes each to doubles; false when the count does not fit.      |
//+------------------------------------------------------------------+
bool MtbUnpackDoubles(const uchar &bytes[],double &values[])
  {
   int count=ArraySize(bytes)/8;
   if(ArraySize(bytes)!=count*8 || ArrayResize(values,count)!=count)
      return(false);
   MtbBlock block;
   for(int at=0; at<count; at+=MTB_BLOCK_NUMBERS)
     {
      int n=MathMin(MTB_BLOCK_NUMBERS,count-at);
      if(ArrayCopy(block.bytes,bytes,0,at*8,n*8)!=n*8 || ArrayCopy(values,block.numbers,at,0,n)!=n)
         return(false);
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| 8 bytes each to whole numbers, with the sign in the top bit.     |
//+------------------------------------------------------------------+
bool MtbUnpackLongs(const uchar &bytes[],long &values[])
  {
   int count=ArraySize(bytes)/8;
   if(ArraySize(bytes)!=count*8 || ArrayResize(values,count)!=count)
      return(false);
   MtbBlock block;
   for(int at=0; at<count; at+=MTB_BLOCK_NUMBERS)
     {
      int n=MathMin(MTB_BLOCK_NUMBERS,count-at);
      if(ArrayCopy(block.bytes,bytes,0,at*8,n*8)!=n*8 || ArrayCopy(values,block.integers,at,0,n)!=n)
         return(false);
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| Text to UTF-8 without the zero that StringToCharArray appends.   |
//+------------------------------------------------------------------+
bool MtbPackText(const string text,uchar &bytes[])
  {
   if(StringLen(text)==0)
      return(ArrayResize(bytes,0)==0);
   int size=StringToCharArray(text,bytes,0,-1,CP_UTF8)-1;
   return(size>0 && ArrayResize(bytes,size)==size);
  }
//+------------------------------------------------------------------+
//| UTF-8 to text; a zero byte ends it.                              |
//+------------------------------------------------------------------+
string MtbUnpackText(const uchar &bytes[])
  {
   if(ArraySize(bytes)==0)
      return("");
   return(CharArrayToString(bytes,0,WHOLE_ARRAY,CP_UTF8));
  }
#endif
//+------------------------------------------------------------------+
