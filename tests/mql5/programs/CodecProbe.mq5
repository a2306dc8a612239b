//+------------------------------------------------------------------+
//| CodecProbe.mq5 - prints requests in hex, and what reply heads    |
//| given in hex mean, for a test to compare with Python's struct    |
//+------------------------------------------------------------------+
#include <MtBridge/Codec.mqh>

input string InpMode="request";          // request, reply, fuzz or numbers
input uint   InpOperation=1;             // request: what is asked for
input ulong  InpRequest=1;               // request: its number
input uint   InpDeadline=0;              // request: ms
input string InpOptions="";              // request: JSON or nothing
input string InpHex="";                  // request: role:rows:cols:hex of each array; reply: hex of each frame
input int    InpRows=2;                  // reply: rows of its result
input int    InpCols=3;                  // reply: columns of its result
input int    InpCount=0;                 // reply: how many matrices that are, 0 for one of two dimensions
input int    InpRounds=1000;             // fuzz: how often
input int    InpSeed=1;                  // fuzz: seed
//+------------------------------------------------------------------+
//| Two digits a byte.                                               |
//+------------------------------------------------------------------+
string Hex(const uchar &data[])
  {
   string text="";
   for(int i=0; i<ArraySize(data); i++)
      text+=StringFormat("%02x",(uint)data[i]);
   return(text);
  }
//+------------------------------------------------------------------+
//| The value of one digit.                                          |
//+------------------------------------------------------------------+
int Digit(const string text,const int at)
  {
   string digits="0123456789abcdef";
   for(int i=0; i<16; i++)
      if(StringSubstr(text,at,1)==StringSubstr(digits,i,1))
         return(i);
   return(0);
  }
//+------------------------------------------------------------------+
//| Back from two digits a byte.                                     |
//+------------------------------------------------------------------+
bool Unhex(const string text,uchar &data[])
  {
   int size=StringLen(text)/2;
   if(ArrayResize(data,size)!=size)
      return(false);
   for(int i=0; i<size; i++)
      data[i]=(uchar)(16*Digit(text,2*i)+Digit(text,2*i+1));
   return(true);
  }
//+------------------------------------------------------------------+
//| Add role:rows:cols:hex; without columns it is weights or text.   |
//+------------------------------------------------------------------+
bool AddArray(CMtbRequest &request,const string description)
  {
   string fields[];
   uchar  bytes[];
   double values[];
   if(StringSplit(description,':',fields)!=4 || !Unhex(fields[3],bytes))
      return(false);
   uint role=(uint)StringToInteger(fields[0]);
   int  rows=(int)StringToInteger(fields[1]);
   int  cols=(int)StringToInteger(fields[2]);
   if(cols==0 && role==MTB_ROLE_WEIGHTS)
      return(MtbUnpackDoubles(bytes,values) && request.Vector(role,values));
   if(cols==0)
      return(request.Text(role,MtbUnpackText(bytes)));
   return(MtbUnpackDoubles(bytes,values) && request.Matrix(role,values,rows,cols));
  }
//+------------------------------------------------------------------+
//| The frames of a request, a line each.                            |
//+------------------------------------------------------------------+
void ShowRequest(void)
  {
   CMtbRequest request;
   string      arrays[];
   uchar       head[];
   uchar       options[];
   request.Begin(InpOperation,InpOptions);
   int count=StringSplit(InpHex,',',arrays);
   for(int i=0; i<count; i++)
      if(!AddArray(request,arrays[i]))
        {
         Print("refused");
         return;
        }
   if(!request.Head(InpRequest,InpDeadline,head) || !MtbPackText(request.options,options))
      return;
   Print("head ",Hex(head));
   Print("options ",Hex(options));
   for(int i=0; i<request.Arrays(); i++)
      Print("array ",Hex(request.frames[i].data));
  }
//+------------------------------------------------------------------+
//| What the frames of a reply mean, or why they mean nothing.       |
//+------------------------------------------------------------------+
void ShowReply(void)
  {
   CMtbReply reply;
   string    parts[];
   uchar     head[];
   int       count=StringSplit(InpHex,',',parts);
   if(count<1 || !Unhex(parts[0],head) || !reply.Head(head))
     {
      Print("fault ",reply.fault);
      return;
     }
   PrintFormat("kind %u operation %u status %u request %I64u arrays %d bytes %I64u",
               reply.kind,reply.operation,reply.status,reply.request,reply.Arrays(),reply.TotalBytes());
   for(int i=0; i<reply.Arrays() && i+1<count; i++)
      if(!Unhex(parts[i+1],reply.frames[i].data))
         return;
   double values[];
   long   whole[];
   string names="";
   bool found=(InpCount==0 && reply.Matrix(MTB_ROLE_RESULT,InpRows,InpCols,values));
   if(InpCount>0)
      found=reply.Windows(MTB_ROLE_RESULT,InpCount,InpRows,InpCols,values);
   if(found)
      for(int i=0; i<ArraySize(values); i++)
         PrintFormat("value %.17g",values[i]);
   if(reply.Longs(MTB_ROLE_COUNTS,whole))
      for(int i=0; i<ArraySize(whole); i++)
         PrintFormat("count %I64d",whole[i]);
   if(reply.Text(MTB_ROLE_NAMES,names))
      Print("names ",names);
   if(reply.Text(MTB_ROLE_SYMBOLS,names))
      Print("symbols ",names);
  }
//+------------------------------------------------------------------+
//| Heads with random bytes changed must be taken or refused; one    |
//| that is taken must fit the memory it announces.                  |
//+------------------------------------------------------------------+
void Fuzz(void)
  {
   uchar sound[];
   uchar head[];
   int   taken=0;
   if(!Unhex(InpHex,sound))
      return;
   MathSrand(InpSeed);
   for(int round=0; round<InpRounds; round++)
     {
      int size=(MathRand()%4>0 ? ArraySize(sound) : MathRand()%(ArraySize(sound)+20));
      if(ArrayResize(head,size)!=size)
         return;
      for(int i=0; i<size; i++)
         head[i]=(i<ArraySize(sound) ? sound[i] : (uchar)(MathRand()%256));
      for(int change=MathRand()%4; change>0 && size>0; change--)
         head[MathRand()%size]=(uchar)(MathRand()%256);
      CMtbReply reply;
      if(!reply.Head(head))
        {
         if(StringLen(reply.fault)==0)
            Print("a head was refused without a word");
         continue;
        }
      taken++;
      for(int i=0; i<reply.Arrays(); i++)
         if(reply.Bytes(i)>INT_MAX)
            Print("a head was taken that announces more than an array can hold");
     }
   PrintFormat("taken %d of %d",taken,InpRounds);
  }
//+------------------------------------------------------------------+
//| Blocks around the size of the union, there and back.             |
//+------------------------------------------------------------------+
void Numbers(void)
  {
   int sizes[]={0,1,511,512,513,1300};
   for(int i=0; i<ArraySize(sizes); i++)
     {
      double values[];
      double again[];
      uchar  bytes[];
      if(ArrayResize(values,sizes[i])!=sizes[i])
         return;
      for(int k=0; k<sizes[i]; k++)
         values[k]=MathLog(k+1.0);
      bool same=(MtbPackDoubles(values,bytes) && MtbUnpackDoubles(bytes,again) && ArraySize(again)==sizes[i]);
      for(int k=0; k<sizes[i] && same; k++)
         same=(values[k]==again[k]);
      PrintFormat("%d %s",sizes[i],same ? "same" : "DIFFERENT");
     }
  }
//+------------------------------------------------------------------+
//| Script program start function                                    |
//+------------------------------------------------------------------+
void OnStart()
  {
   if(InpMode=="request")
      ShowRequest();
   if(InpMode=="reply")
      ShowReply();
   if(InpMode=="fuzz")
      Fuzz();
   if(InpMode=="numbers")
      Numbers();
  }
//+------------------------------------------------------------------+
