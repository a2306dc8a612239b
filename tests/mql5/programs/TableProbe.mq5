//+------------------------------------------------------------------+
//| TableProbe.mq5 - saves a table with the labels that a test names |
//+------------------------------------------------------------------+
#include <MtBridge/Table.mqh>

input string InpLabels="EURUSD|GBPUSD";  // Labels, with | between
input string InpFile="table.csv";        // File
//+------------------------------------------------------------------+
//| Script program start function                                    |
//+------------------------------------------------------------------+
void OnStart()
  {
   string labels[];
   double values[];
   int    count=StringSplit(InpLabels,'|',labels);
   if(ArrayResize(values,count*count)!=count*count)
      return;
   for(int i=0; i<count*count; i++)
      values[i]=(i-1)/3.0;
   ResetLastError();
   bool done=MtbSaveTable(InpFile,labels,values);
   PrintFormat("%s: error %d",done ? "saved" : "not saved",GetLastError());
  }
//+------------------------------------------------------------------+
