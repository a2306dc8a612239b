//+------------------------------------------------------------------+
//| Prices.mqh - closing prices of several symbols, joined by time,  |
//| and their returns                                                |
//| Symbols do not trade at the same hours, so bars are never paired |
//| by position: a row is a time at which every symbol has a bar.    |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_PRICES_MQH
#define MTBRIDGE_PRICES_MQH

#define MTB_HISTORY_MS 5000              // how long a download may take
//+------------------------------------------------------------------+
//| What is computed from two closes that follow each other.         |
//+------------------------------------------------------------------+
enum ENUM_MTB_RETURNS
  {
   MTB_RETURNS_LOG,                      // Logarithm of the ratio
   MTB_RETURNS_SIMPLE,                   // Ratio less one
   MTB_RETURNS_DIFFERENCE,               // Difference
   MTB_RETURNS_NONE                      // None, the prices themselves
  };
//+------------------------------------------------------------------+
//| The finished bars of one symbol, oldest first.                   |
//+------------------------------------------------------------------+
struct MtbSeries
  {
   MqlRates          bars[];
  };
//+------------------------------------------------------------------+
//| Load, then Returns.                                              |
//+------------------------------------------------------------------+
class CMtbPrices
  {
private:
   string            m_symbols[];
   MtbSeries         m_series[];
   datetime          m_times[];          // of the rows
   double            m_closes[];         // row after row
   int               m_bars_seen;        // different times over all symbols
   string            m_text;

   bool              Fail(const string text);
   bool              LoadSeries(const int index,const ENUM_TIMEFRAMES timeframe,const int bars);
   bool              Join(void);
   bool              KeepCommon(const int index);
   void              CountTimes(void);
   string            Ranges(void);

public:
                     CMtbPrices(void);
   bool              Symbols(const string list);
   bool              MarketWatch(void);
   bool              Load(const ENUM_TIMEFRAMES timeframe,const int bars);
   bool              Returns(const ENUM_MTB_RETURNS kind,double &values[],int &rows);
   int               Rows(void) const { return(ArraySize(m_times)); }
   int               Cols(void) const { return(ArraySize(m_symbols)); }
   int               Dropped(void) const { return(m_bars_seen-ArraySize(m_times)); }
   string            Symbol(const int index) const { return(m_symbols[index]); }
   datetime          Time(const int row) const { return(m_times[row]); }
   string            Error(void) const { return(m_text); }
  };
//+------------------------------------------------------------------+
//| Empty until Symbols and Load.                                    |
//+------------------------------------------------------------------+
CMtbPrices::CMtbPrices(void) : m_bars_seen(0),m_text("")
  {
  }
//+------------------------------------------------------------------+
//| Remember what went wrong.                                        |
//+------------------------------------------------------------------+
bool CMtbPrices::Fail(const string text)
  {
   m_text=text;
   return(false);
  }
//+------------------------------------------------------------------+
//| Take a list such as "EURUSD, GBPUSD".                            |
//+------------------------------------------------------------------+
bool CMtbPrices::Symbols(const string list)
  {
   string names[];
   int    count=StringSplit(list,',',names);
   ArrayFree(m_symbols);
   for(int i=0; i<count; i++)
     {
      StringTrimLeft(names[i]);
      StringTrimRight(names[i]);
      if(StringLen(names[i])==0)
         continue;
      for(int k=0; k<ArraySize(m_symbols); k++)
         if(m_symbols[k]==names[i])
            return(Fail(names[i]+" is named twice: name each symbol once."));
      int at=ArraySize(m_symbols);
      if(ArrayResize(m_symbols,at+1)!=at+1)
         return(Fail("There is no memory left for the symbols."));
      m_symbols[at]=names[i];
     }
   if(ArraySize(m_symbols)<1)
      return(Fail("No symbol is named: give a list such as EURUSD,GBPUSD,USDJPY."));
   return(true);
  }
//+------------------------------------------------------------------+
//| Take the symbols that Market Watch shows.                        |
//+------------------------------------------------------------------+
bool CMtbPrices::MarketWatch(void)
  {
   int count=SymbolsTotal(true);
   if(count<1)
      return(Fail("Market Watch shows no symbol: add some, or name them."));
   if(ArrayResize(m_symbols,count)!=count)
      return(Fail("There is no memory left for the symbols."));
   for(int i=0; i<count; i++)
      m_symbols[i]=SymbolName(i,true);
   return(true);
  }
//+------------------------------------------------------------------+
//| Read up to that many finished bars of each symbol and join them. |
//+------------------------------------------------------------------+
bool CMtbPrices::Load(const ENUM_TIMEFRAMES timeframe,const int bars)
  {
   int cols=ArraySize(m_symbols);
   if(bars<2)
      return(Fail(StringFormat("%d bars are too few: ask for 2 or more.",bars)));
   ArrayFree(m_times);
   if(ArrayResize(m_series,cols)!=cols)
      return(Fail("There is no memory left for the prices."));
   for(int i=0; i<cols; i++)
      if(!LoadSeries(i,timeframe,bars))
         return(false);
   return(Join());
  }
//+------------------------------------------------------------------+
//| One symbol. Position 0 is the bar that is still being made, so   |
//| the first one asked for is 1. The terminal may answer -1, or     |
//| with few bars, while it downloads: it is asked again until the   |
//| history is synchronized or the time is up.                       |
//+------------------------------------------------------------------+
bool CMtbPrices::LoadSeries(const int index,const ENUM_TIMEFRAMES timeframe,const int bars)
  {
   string symbol=m_symbols[index];
   ResetLastError();
   if(!SymbolSelect(symbol,true))
      return(Fail(StringFormat("%s is not a symbol of this broker (error %d): write it as Market Watch does, with its suffix.",symbol,GetLastError())));
   ulong deadline=GetTickCount64()+MTB_HISTORY_MS;
   int   count=0;
   while(!IsStopped())
     {
      ResetLastError();
      count=CopyRates(symbol,timeframe,1,bars,m_series[index].bars);
      if(count>=bars || GetTickCount64()>=deadline)
         break;
      if(count>0 && SeriesInfoInteger(symbol,timeframe,SERIES_SYNCHRONIZED)!=0)
         break;
      Sleep(50);
     }
   if(IsStopped())
      return(Fail("The program was stopped while it waited for prices."));
   if(count<1)
      return(Fail(StringFormat("%s has no finished bars (error %d): open its chart once, so that the terminal downloads its history.",symbol,GetLastError())));
   return(true);
  }
//+------------------------------------------------------------------+
//| Keep the times that all symbols have and put their closes there. |
//+------------------------------------------------------------------+
bool CMtbPrices::Join(void)
  {
   int cols=ArraySize(m_symbols);
   int first=ArraySize(m_series[0].bars);
   CountTimes();
   if(ArrayResize(m_times,first)!=first)
      return(Fail("There is no memory left for the prices."));
   for(int i=0; i<first; i++)
      m_times[i]=m_series[0].bars[i].time;
   for(int c=1; c<cols; c++)
      if(!KeepCommon(c))
         return(Fail("There is no memory left for the prices."));
   int rows=ArraySize(m_times);
   if(rows<1)
      return(Fail("The symbols have no bar in common: "+Ranges()+"."));
   if((long)rows*cols>INT_MAX || ArrayResize(m_closes,rows*cols)!=rows*cols)
      return(Fail("There is no memory left for the prices."));
   for(int c=0; c<cols; c++)
     {
      int at=0;
      for(int r=0; r<rows; r++)
        {
         while(m_series[c].bars[at].time<m_times[r])
            at++;
         m_closes[r*cols+c]=m_series[c].bars[at].close;
        }
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| Remove from m_times what this symbol lacks; both are ascending.  |
//+------------------------------------------------------------------+
bool CMtbPrices::KeepCommon(const int index)
  {
   int bars=ArraySize(m_series[index].bars);
   int at=0;
   int kept=0;
   for(int r=0; r<ArraySize(m_times); r++)
     {
      while(at<bars && m_series[index].bars[at].time<m_times[r])
         at++;
      if(at<bars && m_series[index].bars[at].time==m_times[r])
         m_times[kept++]=m_times[r];
     }
   return(ArrayResize(m_times,kept)==kept);
  }
//+------------------------------------------------------------------+
//| How many different times there are, to say what was dropped.     |
//+------------------------------------------------------------------+
void CMtbPrices::CountTimes(void)
  {
   datetime last=0;
   int      cols=ArraySize(m_series);
   int      at[];
   m_bars_seen=0;
   if(ArrayResize(at,cols)!=cols)
      return;
   ArrayInitialize(at,0);
   bool found=true;
   while(found)
     {
      //--- the earliest time that is still ahead of any symbol
      found=false;
      datetime next=0;
      for(int c=0; c<cols; c++)
        {
         while(at[c]<ArraySize(m_series[c].bars) && m_series[c].bars[at[c]].time<=last)
            at[c]++;
         if(at[c]<ArraySize(m_series[c].bars) && (!found || m_series[c].bars[at[c]].time<next))
           {
            next=m_series[c].bars[at[c]].time;
            found=true;
           }
        }
      if(found)
        {
         last=next;
         m_bars_seen++;
        }
     }
  }
//+------------------------------------------------------------------+
//| First and last bar of every symbol, for people.                  |
//+------------------------------------------------------------------+
string CMtbPrices::Ranges(void)
  {
   string text="";
   for(int c=0; c<ArraySize(m_symbols); c++)
     {
      int last=ArraySize(m_series[c].bars)-1;
      if(c>0)
         text+=", ";
      text+=m_symbols[c]+" "+TimeToString(m_series[c].bars[0].time)+" to "+TimeToString(m_series[c].bars[last].time);
     }
   return(text);
  }
//+------------------------------------------------------------------+
//| Returns of the joined closes, row after row; one row fewer than  |
//| prices unless the prices themselves are wanted.                  |
//+------------------------------------------------------------------+
bool CMtbPrices::Returns(const ENUM_MTB_RETURNS kind,double &values[],int &rows)
  {
   int cols=ArraySize(m_symbols);
   int step=(kind==MTB_RETURNS_NONE ? 0 : 1);
   rows=ArraySize(m_times)-step;
   if(rows<2)
      return(Fail(StringFormat("%d common bars are too few for a covariance: ask for more bars or fewer symbols.",ArraySize(m_times))));
   if(ArrayResize(values,rows*cols)!=rows*cols)
      return(Fail("There is no memory left for the returns."));
   for(int r=0; r<rows; r++)
      for(int c=0; c<cols; c++)
        {
         double now=m_closes[(r+step)*cols+c];
         double before=m_closes[r*cols+c];
         if(kind==MTB_RETURNS_NONE || kind==MTB_RETURNS_DIFFERENCE)
           {
            values[r*cols+c]=(step==0 ? now : now-before);
            continue;
           }
         if(before<=0.0 || now<=0.0)
            return(Fail(StringFormat("%s has no positive close at %s, and its returns need one: use differences.",
                                     m_symbols[c],TimeToString(m_times[now<=0.0 ? r+step : r]))));
         values[r*cols+c]=(kind==MTB_RETURNS_LOG ? MathLog(now/before) : now/before-1.0);
        }
   return(true);
  }
#endif
//+------------------------------------------------------------------+
