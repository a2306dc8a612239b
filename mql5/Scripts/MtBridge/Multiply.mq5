//+------------------------------------------------------------------+
//| Multiply.mq5 - the same matrix product three times: three plain  |
//| loops, the terminal's own MatMul, and the worker; timed, and     |
//| held against the loops                                           |
//+------------------------------------------------------------------+
#property copyright "The mtbridge developers, MIT licence"
#property version   "1.00"
#property description "Start the worker with: mtbridge serve"
#property description "Add its address (127.0.0.1) to Tools > Options > Expert Advisors,"
#property description "Allow WebRequest for listed URL"
#property script_show_inputs

#include <MtBridge/Client.mqh>

input group  "Matrices"
input int    InpRows=500;                // Rows of A
input int    InpInner=500;               // Columns of A, rows of B
input int    InpCols=500;                // Columns of B
input int    InpSeed=7;                  // Seed of the random numbers
input int    InpRepeats=3;               // Runs of each, the fastest counts
input group  "Worker"
input string InpHost="127.0.0.1";        // Host
input uint   InpPort=5555;               // Port
input uint   InpTimeout=30000;           // Timeout, ms
//+------------------------------------------------------------------+
//| Numbers between -1 and 1.                                        |
//+------------------------------------------------------------------+
bool Randomize(double &values[],const int count)
  {
   if(ArrayResize(values,count)!=count)
      return(false);
   for(int i=0; i<count; i++)
      values[i]=(MathRand()-16383.5)/16383.5;
   return(true);
  }
//+------------------------------------------------------------------+
//| Row, inner, column: the loop that everybody writes first, and    |
//| what the others must equal.                                      |
//+------------------------------------------------------------------+
bool Serial(const double &a[],const double &b[],double &result[])
  {
   if(ArrayResize(result,InpRows*InpCols)!=InpRows*InpCols)
      return(false);
   ArrayInitialize(result,0.0);
   for(int r=0; r<InpRows; r++)
     {
      if(IsStopped())
         return(false);
      for(int cr=0; cr<InpInner; cr++)
         for(int c=0; c<InpCols; c++)
            result[r*InpCols+c]+=a[r*InpInner+cr]*b[cr*InpCols+c];
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| Largest difference of two results.                               |
//+------------------------------------------------------------------+
double Difference(const double &one[],const double &other[])
  {
   double worst=0.0;
   for(int i=0; i<ArraySize(one); i++)
      worst=MathMax(worst,MathAbs(one[i]-other[i]));
   return(worst);
  }
//+------------------------------------------------------------------+
//| A line of the table.                                             |
//+------------------------------------------------------------------+
void Report(const string name,const ulong microseconds,const double difference)
  {
   double seconds=(double)MathMax(microseconds,(ulong)1)/1000000.0;
   double operations=2.0*InpRows*InpInner*InpCols;
   PrintFormat("%-28s %12.3f %10.2f %12.2e",name,seconds*1000.0,operations/seconds/1000000000.0,difference);
  }
//+------------------------------------------------------------------+
//| Script program start function                                    |
//+------------------------------------------------------------------+
void OnStart()
  {
   double a[];
   double b[];
   double serial[];
   double result[];
   long   largest=INT_MAX/16;
   if(InpRows<1 || InpInner<1 || InpCols<1 || InpRepeats<1 ||
      (long)InpRows*InpInner>largest || (long)InpInner*InpCols>largest || (long)InpRows*InpCols>largest)
     {
      Print("Sizes and repeats must be 1 or more, and each matrix must fit in an MQL5 array.");
      return;
     }
   MathSrand(InpSeed);
   if(!Randomize(a,InpRows*InpInner) || !Randomize(b,InpInner*InpCols))
     {
      Print("There is no memory left for the matrices: choose smaller ones.");
      return;
     }
//--- a warm-up and everything that is not counted
   matrix left;
   matrix right;
   matrix product;
   CMtbClient client;
   client.Fallback(false);
   bool bridge=client.Connect(InpHost,InpPort,InpTimeout);
   if(bridge)
      bridge=client.Multiply(a,InpRows,InpInner,b,InpCols,result);
   if(!bridge)
      Print(client.Error());
   if(!MtbUnflatten(a,InpRows,InpInner,left) || !MtbUnflatten(b,InpInner,InpCols,right))
     {
      Print("There is no memory left for the matrices: choose smaller ones.");
      return;
     }
   ulong best_serial=ULONG_MAX;
   ulong best_matmul=ULONG_MAX;
   ulong best_bridge=ULONG_MAX;
   for(int i=0; i<InpRepeats; i++)
     {
      ulong start=GetMicrosecondCount();
      if(!Serial(a,b,serial))
        {
         Print("The loops were stopped.");
         return;
        }
      best_serial=MathMin(best_serial,GetMicrosecondCount()-start);
      start=GetMicrosecondCount();
      product=left.MatMul(right);
      best_matmul=MathMin(best_matmul,GetMicrosecondCount()-start);
      if(bridge)
        {
         start=GetMicrosecondCount();
         bridge=client.Multiply(a,InpRows,InpInner,b,InpCols,result);
         best_bridge=MathMin(best_bridge,GetMicrosecondCount()-start);
         if(!bridge)
            Print(client.Error());
        }
     }
//--- the table
   double own[];
   PrintFormat("A %d x %d times B %d x %d, doubles, fastest of %d",InpRows,InpInner,InpInner,InpCols,InpRepeats);
   PrintFormat("%-28s %12s %10s %12s","method","ms","GF/s","difference");
   Report("three loops",best_serial,0.0);
   if(MtbFlatten(product,own) && ArraySize(own)==ArraySize(serial))
      Report("matrix::MatMul",best_matmul,Difference(own,serial));
   else
      Print("matrix::MatMul gave no result.");
   if(!bridge)
      return;
   Report("mtbridge with the transfer",best_bridge,Difference(result,serial));
   Print("Worker: ",client.ComputedBy());
  }
//+------------------------------------------------------------------+
