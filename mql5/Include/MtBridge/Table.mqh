//+------------------------------------------------------------------+
//| Table.mqh - a square matrix with its labels, on the Experts tab  |
//| and in a file                                                    |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_TABLE_MQH
#define MTBRIDGE_TABLE_MQH

#include <MtBridge/Bytes.mqh>

#define MTB_TABLE_COLUMNS 12             // what a line of the log can hold
//+------------------------------------------------------------------+
//| Print the matrix, a line a row; format is that of one number and |
//| ten characters wide.                                             |
//+------------------------------------------------------------------+
void MtbPrintTable(const string &labels[],const double &values[],const string format)
  {
   int    count=ArraySize(labels);
   int    shown=MathMin(count,MTB_TABLE_COLUMNS);
   string line=StringFormat("%-10s","");
   for(int c=0; c<shown; c++)
      line+=StringFormat(" %10s",StringSubstr(labels[c],0,10));
   Print(line);
   for(int r=0; r<shown; r++)
     {
      line=StringFormat("%-10s",StringSubstr(labels[r],0,10));
      for(int c=0; c<shown; c++)
         line+=" "+StringFormat(format,values[r*count+c]);
      Print(line);
     }
   if(shown<count)
      PrintFormat("(%d of %d symbols shown; the file has all)",shown,count);
  }
//+------------------------------------------------------------------+
//| Save the matrix as CSV with labels on both sides. %.17g holds a  |
//| double exactly. False, and no file, when it cannot be written.   |
//+------------------------------------------------------------------+
bool MtbSaveTable(const string file_name,const string &labels[],const double &values[])
  {
   int count=ArraySize(labels);
   if(count<1 || ArraySize(values)!=count*count)
      return(false);
//--- bytes and not FILE_CSV: the same file on every code page
   int handle=FileOpen(file_name,FILE_WRITE|FILE_BIN);
   if(handle==INVALID_HANDLE)
      return(false);
   bool done=true;
   for(int r=-1; r<count && done; r++)
     {
      string line=(r<0 ? "" : labels[r]);
      for(int c=0; c<count; c++)
         line+=","+(r<0 ? labels[c] : StringFormat("%.17g",values[r*count+c]));
      uchar bytes[];
      done=(MtbPackText(line+"\r\n",bytes) && FileWriteArray(handle,bytes)==(uint)ArraySize(bytes));
     }
   FileClose(handle);
   if(!done && !FileDelete(file_name))
      Print(file_name," is not complete and could not be removed: remove it by hand.");
   return(done);
  }
#endif
//+------------------------------------------------------------------+
