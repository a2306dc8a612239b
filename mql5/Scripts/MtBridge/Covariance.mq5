//+------------------------------------------------------------------+
//| Covariance.mq5 - covariance or correlation of the symbols that   |
//| you name, computed by an mtbridge worker, printed and saved      |
//+------------------------------------------------------------------+
#property copyright "The mtbridge developers, MIT licence"
#property version   "1.00"
#property description "Start the worker with: mtbridge serve"
#property description "Add its address (127.0.0.1) to Tools > Options > Expert Advisors,"
#property description "Allow WebRequest for listed URL"
#property script_show_inputs

#include <MtBridge/Client.mqh>
#include <MtBridge/Prices.mqh>
#include <MtBridge/Table.mqh>
//+------------------------------------------------------------------+
//| What is computed.                                                |
//+------------------------------------------------------------------+
enum ENUM_STATISTIC
  {
   STATISTIC_COVARIANCE,                 // Covariance
   STATISTIC_CORRELATION                 // Correlation
  };

input group            "Data"
input string           InpSymbols="EURUSD,GBPUSD,USDJPY"; // Symbols, separated by commas
input ENUM_TIMEFRAMES  InpTimeframe=PERIOD_H1;            // Timeframe
input int              InpBars=5000;                      // Bars of each symbol
input ENUM_MTB_RETURNS InpReturns=MTB_RETURNS_LOG;        // Returns
input ENUM_STATISTIC   InpStatistic=STATISTIC_COVARIANCE; // Statistic
input string           InpFile="MtBridge\\covariance.csv"; // File in MQL5\Files, empty for none
input group            "Worker"
input string           InpHost="127.0.0.1";               // Host
input uint             InpPort=5555;                      // Port
input uint             InpTimeout=10000;                  // Timeout, ms
input bool             InpFallback=true;                  // Without a worker, compute in the terminal
//+------------------------------------------------------------------+
//| Script program start function                                    |
//+------------------------------------------------------------------+
void OnStart()
  {
   CMtbPrices prices;
   double     returns[];
   int        rows=0;
   if(!prices.Symbols(InpSymbols) || !prices.Load(InpTimeframe,InpBars) || !prices.Returns(InpReturns,returns,rows))
     {
      Print(prices.Error());
      return;
     }
   PrintFormat("%d symbols, %s to %s: %d rows kept, %d dropped (times that not all symbols have)",
               prices.Cols(),TimeToString(prices.Time(0)),TimeToString(prices.Time(prices.Rows()-1)),prices.Rows(),prices.Dropped());
   if(InpReturns==MTB_RETURNS_NONE)
      Print("Warning: prices and not returns: two trends correlate whether or not they have to do with each other.");
//--- compute
   CMtbClient client;
   double     result[];
   client.Fallback(InpFallback);
   bool done=client.Connect(InpHost,InpPort,InpTimeout);
   if(!done && !InpFallback)
     {
      Print(client.Error());
      return;
     }
   ulong start=GetMicrosecondCount();
   if(InpStatistic==STATISTIC_CORRELATION)
      done=client.Correlation(returns,rows,prices.Cols(),result);
   else
      done=client.Covariance(returns,rows,prices.Cols(),result);
   if(!done)
     {
      Print(client.Error());
      return;
     }
   double milliseconds=(double)(GetMicrosecondCount()-start)/1000.0;
   PrintFormat("Computed by %s in %.1f ms",client.ComputedBy(),milliseconds);
//--- show and save
   string labels[];
   int    cols=prices.Cols();
   if(ArrayResize(labels,cols)!=cols)
     {
      Print("There is no memory left for the labels.");
      return;
     }
   for(int i=0; i<cols; i++)
      labels[i]=prices.Symbol(i);
   MtbPrintTable(labels,result,InpStatistic==STATISTIC_CORRELATION ? "%10.4f" : "%10.3e");
   if(StringLen(InpFile)==0)
      return;
   ResetLastError();
   if(MtbSaveTable(InpFile,labels,result))
      Print("Saved in MQL5\\Files\\",InpFile);
   else
      PrintFormat("%s could not be written (error %d): close it in other programs and see whether the disk is full.",InpFile,GetLastError());
  }
//+------------------------------------------------------------------+
