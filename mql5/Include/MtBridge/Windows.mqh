//+------------------------------------------------------------------+
//| Windows.mqh - CMtbWindows: rolling, expanding, exponentially     |
//| weighted and lagged matrices from an mtbridge worker             |
//|                                                                  |
//|   MtbMoving wanted;                                              |
//|   wanted.statistic=MTB_STATISTIC_CORRELATION;                    |
//|   wanted.reduce=MTB_REDUCE_MEAN;                                 |
//|   if(client.Rolling(returns,rows,cols,60,wanted,mean,windows))   |
//|      ...                                                         |
//|                                                                  |
//| Data are (rows = bars, oldest first; columns = symbols), row     |
//| after row; NaN is a missing value, and a pair of symbols is      |
//| computed on the rows that both have. The terminal has nothing of |
//| the kind, so without a worker these calls fail.                  |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_WINDOWS_MQH
#define MTBRIDGE_WINDOWS_MQH

#include <MtBridge/Exchange.mqh>
#include <MtBridge/Fallback.mqh>

#define MTB_MAX_LAGS 4096
//+------------------------------------------------------------------+
//| What is computed of each window.                                 |
//+------------------------------------------------------------------+
enum ENUM_MTB_STATISTIC
  {
   MTB_STATISTIC_COVARIANCE,             // Covariance
   MTB_STATISTIC_CORRELATION,            // Correlation
   MTB_STATISTIC_BETA                    // Beta of the column to the row
  };
//+------------------------------------------------------------------+
//| What is sent of each matrix.                                     |
//+------------------------------------------------------------------+
enum ENUM_MTB_REDUCE
  {
   MTB_REDUCE_NONE,                      // All: cols x cols numbers a window
   MTB_REDUCE_MEAN,                      // Mean beside the diagonal: one number
   MTB_REDUCE_ROW,                       // One row: cols numbers
   MTB_REDUCE_EIGENVALUE,                // Largest eigenvalue: one number
   MTB_REDUCE_VARIANCE                   // Variance of a portfolio: one number
  };
//+------------------------------------------------------------------+
//| What the speed of an exponential decay is called.                |
//+------------------------------------------------------------------+
enum ENUM_MTB_DECAY
  {
   MTB_DECAY_ALPHA,                      // Weight of the newest bar, 0 to 1
   MTB_DECAY_SPAN,                       // Span in bars, 1 or more
   MTB_DECAY_HALFLIFE,                   // Bars until a weight is halved
   MTB_DECAY_COM                         // Centre of mass in bars, 0 or more
  };
//+------------------------------------------------------------------+
//| What is wanted; by default the covariances of all windows.       |
//+------------------------------------------------------------------+
struct MtbMoving
  {
   ENUM_MTB_STATISTIC statistic;
   ENUM_MTB_REDUCE   reduce;
   int               column;             // of MTB_REDUCE_ROW; the benchmark of betas
   int               step;               // of Rolling: bars from window to window
   int               min_periods;        // bars that a pair must have; 0 leaves it to the worker
   int               ddof;               // the divisor is bars-ddof; of Ewm, 0 is the biased covariance
   bool              last;               // only the newest window
   double            weights[];          // of MTB_REDUCE_VARIANCE: one a symbol

                     MtbMoving(void) : statistic(MTB_STATISTIC_COVARIANCE),reduce(MTB_REDUCE_NONE),column(0),step(1),min_periods(0),ddof(1),last(false) { }
  };
//+------------------------------------------------------------------+
//| Matrices that move along the bars.                               |
//+------------------------------------------------------------------+
class CMtbWindows : public CMtbExchange
  {
private:
   bool              Moving(const uint operation,const double &data[],const int rows,const int cols,const string own,const MtbMoving &wanted,double &result[],int &windows);

protected:
   virtual void      Begin(void) { Start(); }
   bool              CheckSizes(const double &data[],const int rows,const int cols);

public:
   bool              Rolling(const double &data[],const int rows,const int cols,const int window,const MtbMoving &wanted,double &result[],int &windows);
   bool              Expanding(const double &data[],const int rows,const int cols,const MtbMoving &wanted,double &result[],int &windows);
   bool              Ewm(const double &data[],const int rows,const int cols,const ENUM_MTB_DECAY decay,const double value,const MtbMoving &wanted,double &result[],int &windows);
   bool              Lagged(const double &data[],const int rows,const int cols,const int lags,const ENUM_MTB_STATISTIC statistic,double &result[]);
//--- the newest matrix, for the type matrix
   bool              RollingLast(const matrix &data,const int window,const ENUM_MTB_STATISTIC statistic,matrix &result);
   bool              EwmLast(const matrix &data,const ENUM_MTB_DECAY decay,const double value,const ENUM_MTB_STATISTIC statistic,matrix &result);
  };
//+------------------------------------------------------------------+
//| As the options call it.                                          |
//+------------------------------------------------------------------+
string MtbStatisticName(const ENUM_MTB_STATISTIC statistic)
  {
   if(statistic==MTB_STATISTIC_CORRELATION)
      return("correlation");
   if(statistic==MTB_STATISTIC_BETA)
      return("beta");
   return("covariance");
  }
//+------------------------------------------------------------------+
//| As the options call it.                                          |
//+------------------------------------------------------------------+
string MtbReduceName(const ENUM_MTB_REDUCE reduce)
  {
   if(reduce==MTB_REDUCE_MEAN)
      return("mean");
   if(reduce==MTB_REDUCE_ROW)
      return("row");
   if(reduce==MTB_REDUCE_EIGENVALUE)
      return("eigenvalue");
   if(reduce==MTB_REDUCE_VARIANCE)
      return("variance");
   return("none");
  }
//+------------------------------------------------------------------+
//| As the options call it.                                          |
//+------------------------------------------------------------------+
string MtbDecayName(const ENUM_MTB_DECAY decay)
  {
   if(decay==MTB_DECAY_SPAN)
      return("span");
   if(decay==MTB_DECAY_HALFLIFE)
      return("halflife");
   if(decay==MTB_DECAY_COM)
      return("com");
   return("alpha");
  }
//+------------------------------------------------------------------+
//| Sizes that make sense, before anything is sent.                  |
//+------------------------------------------------------------------+
bool CMtbWindows::CheckSizes(const double &data[],const int rows,const int cols)
  {
   if(rows>0 && cols>0 && (long)rows*cols==(long)ArraySize(data) && ArraySize(data)<=INT_MAX/8)
      return(true);
   return(Fail(MTB_ERROR_ARGUMENT,StringFormat("%d numbers are no matrix of %d rows and %d columns.",ArraySize(data),rows,cols)));
  }
//+------------------------------------------------------------------+
//| One request for all that moves; own is what only its operation   |
//| has among the options.                                           |
//+------------------------------------------------------------------+
bool CMtbWindows::Moving(const uint operation,const double &data[],const int rows,const int cols,const string own,const MtbMoving &wanted,double &result[],int &windows)
  {
   CMtbRequest request;
   CMtbReply   reply;
   windows=0;
   if(!CheckSizes(data,rows,cols))
      return(false);
   if(wanted.step<1)
      return(Fail(MTB_ERROR_ARGUMENT,StringFormat("A step of %d bars leads nowhere: it must be 1 or more.",wanted.step)));
   if(wanted.reduce==MTB_REDUCE_VARIANCE && ArraySize(wanted.weights)!=cols)
      return(Fail(MTB_ERROR_ARGUMENT,StringFormat("%d weights are no portfolio of %d symbols: give one a symbol.",ArraySize(wanted.weights),cols)));
   int  count=(wanted.last ? 1 : operation==MTB_ROLLING ? (rows-1)/wanted.step+1 : rows);
   bool row=(wanted.reduce==MTB_REDUCE_ROW);
   int  height=(wanted.reduce==MTB_REDUCE_NONE ? cols : 1);
   int  width=(wanted.reduce==MTB_REDUCE_NONE || row ? cols : 1);
   if((long)height*width>INT_MAX/16 || (long)count*height*width>INT_MAX/16)
      return(Fail(MTB_ERROR_TOO_LARGE,StringFormat("%d windows of %d x %d numbers do not fit in an MQL5 array: ask for the last one, a larger step, or less of each.",count,height,width)));
   string options=StringFormat("{%s, \"statistic\": \"%s\", \"reduce\": \"%s\"",own,MtbStatisticName(wanted.statistic),MtbReduceName(wanted.reduce));
   if(row)
      options+=StringFormat(", \"column\": %d",wanted.column);
   if(wanted.min_periods!=0)
      options+=StringFormat(", \"min_periods\": %d",wanted.min_periods);
   if(wanted.last)
      options+=", \"last\": true";
   request.Begin(operation,options+"}");
   bool room=request.Matrix(MTB_ROLE_DATA,data,rows,cols);
   if(wanted.reduce==MTB_REDUCE_VARIANCE)
      room=(room && request.Vector(MTB_ROLE_WEIGHTS,wanted.weights));
   if(!room)
      return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left for a request."));
   if(!Exchange(request,reply,8*(ulong)count*(ulong)height*(ulong)width))
      return(false);
   if(!reply.Windows(MTB_ROLE_RESULT,count,height,width,result))
      return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("The reply of %s cannot be used: %s.",Place(),reply.fault)));
   windows=count;
   return(true);
  }
//+------------------------------------------------------------------+
//| Windows of that many bars, the newest bar of each included. The  |
//| result holds one window after the other, windows of them.        |
//+------------------------------------------------------------------+
bool CMtbWindows::Rolling(const double &data[],const int rows,const int cols,const int window,const MtbMoving &wanted,double &result[],int &windows)
  {
   Begin();
   string own=StringFormat("\"window\": %d, \"step\": %d, \"ddof\": %d",window,wanted.step,wanted.ddof);
   return(Moving(MTB_ROLLING,data,rows,cols,own,wanted,result,windows));
  }
//+------------------------------------------------------------------+
//| From the first bar to each bar.                                  |
//+------------------------------------------------------------------+
bool CMtbWindows::Expanding(const double &data[],const int rows,const int cols,const MtbMoving &wanted,double &result[],int &windows)
  {
   Begin();
   return(Moving(MTB_EXPANDING,data,rows,cols,StringFormat("\"ddof\": %d",wanted.ddof),wanted,result,windows));
  }
//+------------------------------------------------------------------+
//| All bars to each bar, the old ones with less weight.             |
//+------------------------------------------------------------------+
bool CMtbWindows::Ewm(const double &data[],const int rows,const int cols,const ENUM_MTB_DECAY decay,const double value,const MtbMoving &wanted,double &result[],int &windows)
  {
   Begin();
   if(!MathIsValidNumber(value))
      return(Fail(MTB_ERROR_ARGUMENT,"The decay is not a number: give alpha, span, halflife or com."));
   string own=StringFormat("\"%s\": %.17g",MtbDecayName(decay),value);
   if(wanted.ddof==0)
      own+=", \"bias\": true";
   return(Moving(MTB_EWM,data,rows,cols,own,wanted,result,windows));
  }
//+------------------------------------------------------------------+
//| 2*lags+1 matrices, of the lags -lags to lags. In that of lag L   |
//| element (i,j) is of column i at bar t-L with column j at bar t.  |
//+------------------------------------------------------------------+
bool CMtbWindows::Lagged(const double &data[],const int rows,const int cols,const int lags,const ENUM_MTB_STATISTIC statistic,double &result[])
  {
   CMtbRequest request;
   CMtbReply   reply;
   Begin();
   if(!CheckSizes(data,rows,cols))
      return(false);
   if(lags<0 || lags>MTB_MAX_LAGS)
      return(Fail(MTB_ERROR_ARGUMENT,StringFormat("%d lags are not possible: give 0 to %d.",lags,MTB_MAX_LAGS)));
   int count=2*lags+1;
   if((long)cols*cols>INT_MAX/16 || (long)count*cols*cols>INT_MAX/16)
      return(Fail(MTB_ERROR_TOO_LARGE,StringFormat("%d matrices of %d columns do not fit in an MQL5 array: ask for fewer lags or symbols.",count,cols)));
   request.Begin(MTB_LAGGED,StringFormat("{\"lags\": %d, \"statistic\": \"%s\"}",lags,MtbStatisticName(statistic)));
   if(!request.Matrix(MTB_ROLE_DATA,data,rows,cols))
      return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left for a request."));
//--- the result and counts of the same shape
   if(!Exchange(request,reply,16*(ulong)count*(ulong)cols*(ulong)cols))
      return(false);
   if(!reply.Windows(MTB_ROLE_RESULT,count,cols,cols,result))
      return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("The reply of %s cannot be used: %s.",Place(),reply.fault)));
   return(true);
  }
//+------------------------------------------------------------------+
//| The matrix of the newest window.                                 |
//+------------------------------------------------------------------+
bool CMtbWindows::RollingLast(const matrix &data,const int window,const ENUM_MTB_STATISTIC statistic,matrix &result)
  {
   MtbMoving wanted;
   double    flat[];
   double    newest[];
   int       cols=(int)data.Cols();
   int       windows=0;
   wanted.statistic=statistic;
   wanted.last=true;
   if(!MtbFlatten(data,flat))
      return(Fail(MTB_ERROR_TOO_LARGE,"The matrix does not fit in an MQL5 array."));
   return(Rolling(flat,(int)data.Rows(),cols,window,wanted,newest,windows) && MtbUnflatten(newest,cols,cols,result));
  }
//+------------------------------------------------------------------+
//| The matrix after the newest bar.                                 |
//+------------------------------------------------------------------+
bool CMtbWindows::EwmLast(const matrix &data,const ENUM_MTB_DECAY decay,const double value,const ENUM_MTB_STATISTIC statistic,matrix &result)
  {
   MtbMoving wanted;
   double    flat[];
   double    newest[];
   int       cols=(int)data.Cols();
   int       windows=0;
   wanted.statistic=statistic;
   wanted.last=true;
   if(!MtbFlatten(data,flat))
      return(Fail(MTB_ERROR_TOO_LARGE,"The matrix does not fit in an MQL5 array."));
   return(Ewm(flat,(int)data.Rows(),cols,decay,value,wanted,newest,windows) && MtbUnflatten(newest,cols,cols,result));
  }
#endif
//+------------------------------------------------------------------+
