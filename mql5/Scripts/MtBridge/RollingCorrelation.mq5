//+------------------------------------------------------------------+
//| RollingCorrelation.mq5 - the mean correlation of the symbols of  |
//| Market Watch over a moving window, computed by an mtbridge       |
//| worker and printed for the last bars                             |
//+------------------------------------------------------------------+
#property copyright "The mtbridge developers, MIT licence"
#property version   "1.00"
#property description "Start the worker with: mtbridge serve"
#property description "Add its address (127.0.0.1) to Tools > Options > Expert Advisors,"
#property description "Allow WebRequest for listed URL"
#property script_show_inputs

#include <MtBridge/Client.mqh>
#include <MtBridge/Prices.mqh>

input group            "Data"
input string           InpSymbols="";                     // Symbols, separated by commas, empty for Market Watch
input ENUM_TIMEFRAMES  InpTimeframe=PERIOD_H1;            // Timeframe
input int              InpBars=2000;                      // Bars of each symbol
input ENUM_MTB_RETURNS InpReturns=MTB_RETURNS_LOG;        // Returns
input int              InpWindow=60;                      // Bars of the window
input int              InpShown=10;                       // Last bars to print
input group            "Worker"
input string           InpHost="127.0.0.1";               // Host
input uint             InpPort=5555;                      // Port
input uint             InpTimeout=10000;                  // Timeout, ms
//+------------------------------------------------------------------+
//| Script program start function                                    |
//+------------------------------------------------------------------+
void OnStart()
  {
   CMtbPrices prices;
   double     returns[];
   int        rows=0;
   bool       named=(StringLen(InpSymbols)>0 ? prices.Symbols(InpSymbols) : prices.MarketWatch());
   if(!named || !prices.Load(InpTimeframe,InpBars) || !prices.Returns(InpReturns,returns,rows))
     {
      Print(prices.Error());
      return;
     }
   if(InpWindow<2 || InpWindow>rows || prices.Cols()<2)
     {
      PrintFormat("A window of %d bars over %d rows of %d symbols has no mean correlation: it needs 2 symbols and a window of 2 to %d bars.",
                  InpWindow,rows,prices.Cols(),rows);
      return;
     }
   PrintFormat("%d symbols, %s to %s: %d rows kept, %d dropped (times that not all symbols have)",
               prices.Cols(),TimeToString(prices.Time(0)),TimeToString(prices.Time(prices.Rows()-1)),prices.Rows(),prices.Dropped());
//--- compute
   CMtbClient client;
   MtbMoving  wanted;
   double     mean[];
   int        windows=0;
   wanted.statistic=MTB_STATISTIC_CORRELATION;
   wanted.reduce=MTB_REDUCE_MEAN;
   if(!client.Connect(InpHost,InpPort,InpTimeout))
     {
      Print(client.Error());
      return;
     }
   ulong start=GetMicrosecondCount();
   if(!client.Rolling(returns,rows,prices.Cols(),InpWindow,wanted,mean,windows))
     {
      Print(client.Error());
      return;
     }
   double milliseconds=(double)(GetMicrosecondCount()-start)/1000.0;
   PrintFormat("Computed by %s in %.1f ms: %d windows of %d bars",client.ComputedBy(),milliseconds,windows,InpWindow);
//--- returns have one row fewer than prices, unless they are the prices
   int skipped=prices.Rows()-rows;
   for(int i=MathMax(0,windows-InpShown); i<windows && !IsStopped(); i++)
      PrintFormat("%s %8.4f",TimeToString(prices.Time(i+skipped)),mean[i]);
  }
//+------------------------------------------------------------------+
