//+------------------------------------------------------------------+
//| ClientProbe.mq5 - calls the client as a list of actions says and |
//| prints, a line each, what came of it                             |
//+------------------------------------------------------------------+
#include <MtBridge/Client.mqh>

input string InpActions="connect,covariance"; // Actions, separated by commas
input int    InpRows=40;                 // Rows of the data
input int    InpCols=3;                  // Columns of the data
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
   if(!MtbUnflatten(data,InpRows,InpCols,x))
      return(false);
   bool done=false;
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
