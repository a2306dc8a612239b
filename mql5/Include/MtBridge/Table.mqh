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
//| Text as a cell of a CSV file (RFC 4180): in quotation marks when |
//| it holds what would end a cell, and those within it doubled.     |
//+------------------------------------------------------------------+
bool MtbCsvCell(const string text,string &cell)
  {
   cell=text;
   if(StringFind(text,",")<0 && StringFind(text,"\"")<0 && StringFind(text,"\r")<0 && StringFind(text,"\n")<0)
      return(true);
   if(StringReplace(cell,"\"","\"\"")<0)
      return(false);
   cell="\""+cell+"\"";
   return(true);
  }
//+------------------------------------------------------------------+
//| Write the table to an open file; false when a part is missing.   |
//+------------------------------------------------------------------+
bool MtbWriteTable(const int handle,const string &labels[],const double &values[])
  {
   int    count=ArraySize(labels);
   string cells[];
   if(ArrayResize(cells,count)!=count)
      return(false);
   for(int i=0; i<count; i++)
      if(!MtbCsvCell(labels[i],cells[i]))
         return(false);
   for(int r=-1; r<count; r++)
     {
      string line=(r<0 ? "" : cells[r]);
      for(int c=0; c<count; c++)
         line+=","+(r<0 ? cells[c] : StringFormat("%.17g",values[r*count+c]));
      uchar bytes[];
      if(!MtbPackText(line+"\r\n",bytes) || FileWriteArray(handle,bytes)!=(uint)ArraySize(bytes))
         return(false);
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| Save the matrix as CSV with labels on both sides. %.17g holds a  |
//| double exactly. The file takes its name when it is whole: until  |
//| then, and when that fails, one that had the name stays as it is. |
//+------------------------------------------------------------------+
bool MtbSaveTable(const string file_name,const string &labels[],const double &values[])
  {
   int count=ArraySize(labels);
   if(count<1 || ArraySize(values)!=count*count)
      return(false);
//--- bytes and not FILE_CSV: the same file on every code page
   string temporary=file_name+".tmp";
   int    handle=FileOpen(temporary,FILE_WRITE|FILE_BIN);
   if(handle==INVALID_HANDLE)
      return(false);
   bool done=MtbWriteTable(handle,labels,values);
   FileClose(handle);
   if(done && FileMove(temporary,0,file_name,FILE_REWRITE))
      return(true);
   if(!FileDelete(temporary))
      Print(temporary," is of no use and could not be removed: remove it by hand.");
   return(false);
  }
#endif
//+------------------------------------------------------------------+
