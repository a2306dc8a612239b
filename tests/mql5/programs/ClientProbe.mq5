//+------------------------------------------------------------------+
//| ClientProbe.mq5 - calls the client as a list of actions says and |
//| prints, a line each, what came of it                             |
//+------------------------------------------------------------------+
#include <MtBridge/Client.mqh>

input string InpActions="connect,covariance"; // Actions, separated by commas
input int    InpRows=40;                 // Rows of the data
input int    InpCols=3;                  // Columns of the data
input int    InpWindow=5;                // Bars of a window, or lags
input double InpDecay=7.0;               // Span of the exponential weights
input string InpHost="127.0.0.1";        // Host
input uint   InpPort=5555;               // Port
input uint   InpTimeout=3000;            // Timeout, ms
input bool   InpFallback=false;          // Compute in the terminal
//+------------------------------------------------------------------+
//| Data that a test can make again: a sum of two simple sequences.  |
//+------------------------------------------------------------------+
bool Data(double &values[])
  {
   int count=InpRows*InpCols;
   if(ArrayResize(values,count)!=count)
      return(false);
   for(int i=0; i<count; i++)
      values[i]=((i*7919)%1009)/1009.0+((i*31)%17)*0.25;
   return(true);
  }
//+------------------------------------------------------------------+
//| One line for a test to read.                                     |
//+------------------------------------------------------------------+
void Report(const string action,const bool done,CMtbClient &client,const double &values[])
  {
   if(!done)
     {
      PrintFormat("%s: error %d status %u: %s",action,(int)client.ErrorKind(),client.Status(),client.Error());
      return;
     }
   string line=action+(client.Local() ? ": local" : ": ok");
   for(int i=0; i<ArraySize(values); i++)
      line+=StringFormat(" %.17g",values[i]);
   Print(line);
  }
//+------------------------------------------------------------------+
//| What moves along the bars; false for any other action.           |
//+------------------------------------------------------------------+
bool Moves(const string action,CMtbClient &client,double &data[],double &result[],bool &done)
  {
   MtbMoving wanted;
   int       windows=0;
   if(StringFind(action,"correlation")>0)
      wanted.statistic=MTB_STATISTIC_CORRELATION;
   if(StringFind(action,"_mean")>0)
      wanted.reduce=MTB_REDUCE_MEAN;
   if(StringFind(action,"_eigenvalue")>0)
      wanted.reduce=MTB_REDUCE_EIGENVALUE;
   if(StringFind(action,"_variance")>0)
     {
      wanted.reduce=MTB_REDUCE_VARIANCE;
      int count=(StringFind(action,"_wrong")>0 ? InpCols+1 : InpCols);
      if(ArrayResize(wanted.weights,count)!=count)
         return(false);
      for(int i=0; i<count; i++)
         wanted.weights[i]=0.5-0.25*i;
     }
   if(StringFind(action,"_row")>0)
      wanted.reduce=MTB_REDUCE_ROW;
   if(StringFind(action,"_beta")>0)
     {
      wanted.statistic=MTB_STATISTIC_BETA;
      wanted.reduce=MTB_REDUCE_ROW;
     }
   if(StringFind(action,"_column")>0)
      wanted.column=InpCols-1;
   if(StringFind(action,"_step")>0)
      wanted.step=7;
   if(StringFind(action,"_few")>0)
      wanted.min_periods=3;
   if(StringFind(action,"_biased")>0)
      wanted.ddof=0;
   wanted.last=(StringFind(action,"_last")>0);
   if(StringFind(action,"_hole")>0)
      data[InpCols+1]=MathLog(-1.0);
   if(StringFind(action,"rolling")==0)
      done=client.Rolling(data,InpRows,InpCols,InpWindow,wanted,result,windows);
   else
      if(StringFind(action,"expanding")==0)
         done=client.Expanding(data,InpRows,InpCols,wanted,result,windows);
      else
         if(StringFind(action,"ewm")==0)
            done=client.Ewm(data,InpRows,InpCols,MTB_DECAY_SPAN,InpDecay,wanted,result,windows);
         else
            if(StringFind(action,"lagged")==0)
               done=client.Lagged(data,InpRows,InpCols,InpWindow,wanted.statistic,result);
            else
               return(false);
   return(true);
  }
//+------------------------------------------------------------------+
//| The same operation on arrays or, with matrix_ before its name,   |
//| on the type matrix.                                              |
//+------------------------------------------------------------------+
bool Call(const string action,CMtbClient &client,double &data[],double &result[])
  {
   MtbWorker worker;
   matrix    x;
   matrix    y;
   if(action=="connect")
      return(client.Connect(InpHost,InpPort,InpTimeout));
   if(action=="close")
     {
      client.Close();
      return(true);
     }
   if(action=="ping")
     {
      bool answered=client.Ping(worker);
      if(answered)
         PrintFormat("worker: %s, %s, %s, %I64u rows",worker.program,worker.engine,worker.device,worker.rows);
      return(answered);
     }
   if(action=="wrong")
      return(client.Covariance(data,InpRows+1,InpCols,result));
   if(action=="nan")
      data[InpCols+1]=MathLog(-1.0);
   if(action=="ddof")
      return(client.Covariance(data,InpRows,InpCols,result,0));
   if(action=="badddof")
      return(client.Covariance(data,InpRows,InpCols,result,-3));
   if(action=="multiply")
      return(client.Multiply(data,InpRows,InpCols,data,InpRows,result));
   if(action=="gram")
      return(client.Gram(data,InpRows,InpCols,result));
   if(action=="correlation")
      return(client.Correlation(data,InpRows,InpCols,result));
   if(action=="covariance" || action=="nan")
      return(client.Covariance(data,InpRows,InpCols,result));
   bool done=false;
   if(Moves(action,client,data,result,done))
      return(done);
   if(!MtbUnflatten(data,InpRows,InpCols,x))
      return(false);
   if(action=="matrix_multiply")
     {
      matrix turned=x.Transpose();
      done=client.Multiply(turned,x,y);
     }
   if(action=="matrix_wrong")
      done=client.Multiply(x,x,y);
   if(action=="matrix_gram")
      done=client.Gram(x,y);
   if(action=="matrix_covariance")
      done=client.Covariance(x,y);
   if(action=="matrix_correlation")
      done=client.Correlation(x,y);
   if(action=="matrix_rolling")
      done=client.RollingLast(x,InpWindow,MTB_STATISTIC_CORRELATION,y);
   if(action=="matrix_ewm")
      done=client.EwmLast(x,MTB_DECAY_SPAN,InpDecay,MTB_STATISTIC_COVARIANCE,y);
   return(done && MtbFlatten(y,result));
  }
//+------------------------------------------------------------------+
//| Script program start function                                    |
//+------------------------------------------------------------------+
void OnStart()
  {
   CMtbClient client;
   string     actions[];
   int        count=StringSplit(InpActions,',',actions);
   client.Fallback(InpFallback);
   for(int i=0; i<count; i++)
     {
      double data[];
      double result[];
      if(actions[i]=="wait")
        {
         //--- a test makes the file GO.csv when it is ready
         Print("waiting");
         while(!IsStopped() && !SymbolSelect("GO",true))
            Sleep(10);
         continue;
        }
      if(!Data(data))
         return;
      bool done=Call(actions[i],client,data,result);
      Report(actions[i],done,client,result);
     }
  }
//+------------------------------------------------------------------+
