//+------------------------------------------------------------------+
//| Client.mqh - CMtbClient: matrix work in an mtbridge worker       |
//|                                                                  |
//|   CMtbClient client;                                             |
//|   if(!client.Connect("127.0.0.1",5555,5000))                     |
//|      Print(client.Error());                                      |
//|   if(client.Covariance(prices,rows,cols,result))                 |
//|      ...                                                         |
//|                                                                  |
//| Rolling, expanding, exponentially weighted and lagged matrices   |
//| are in Windows.mqh.                                              |
//|                                                                  |
//| Matrices are (rows = bars, oldest first; columns = symbols), row |
//| after row in a double array, or of the type matrix. In the       |
//| strategy tester, and when no worker can be reached, the          |
//| terminal's own matrix methods answer: Local() says so, and a     |
//| line is printed once. Fallback(false) turns that off.            |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_CLIENT_MQH
#define MTBRIDGE_CLIENT_MQH

#include <MtBridge/Fallback.mqh>
#include <MtBridge/Windows.mqh>
//+------------------------------------------------------------------+
//| Matrix work in a worker, or else in the terminal.                |
//+------------------------------------------------------------------+
class CMtbClient : public CMtbWindows
  {
private:
   bool              m_fallback;
   bool              m_told;             // the fallback has been announced
   bool              m_local;

   bool              Ask(CMtbRequest &request,const int rows,const int cols,double &result[]);
   bool              MayComputeHere(void);
   bool              MayComputeHere(const double &data[],const int cols);
   bool              ComputedHere(const bool done);

protected:
   virtual void      Begin(void) override;

public:
                     CMtbClient(void);
   void              Fallback(const bool allowed) { m_fallback=allowed; }
   bool              Multiply(const double &a[],const int rows,const int inner,const double &b[],const int cols,double &result[]);
   bool              Gram(const double &data[],const int rows,const int cols,double &result[]);
   bool              Covariance(const double &data[],const int rows,const int cols,double &result[],const int ddof=1);
   bool              Correlation(const double &data[],const int rows,const int cols,double &result[]);
   bool              Multiply(const matrix &a,const matrix &b,matrix &result);
   bool              Gram(const matrix &data,matrix &result);
   bool              Covariance(const matrix &data,matrix &result,const int ddof=1);
   bool              Correlation(const matrix &data,matrix &result);
//--- about the last call
   bool              Local(void) const { return(m_local); }
   string            ComputedBy(void) const;
  };
//+------------------------------------------------------------------+
//| The terminal may compute unless Fallback says otherwise.         |
//+------------------------------------------------------------------+
CMtbClient::CMtbClient(void) : m_fallback(true),m_told(false),m_local(false)
  {
  }
//+------------------------------------------------------------------+
//| Forget the last call and start the clock of this one.            |
//+------------------------------------------------------------------+
void CMtbClient::Begin(void)
  {
   m_local=false;
   Start();
  }
//+------------------------------------------------------------------+
//| Send a request whose result is a rows x cols matrix.             |
//+------------------------------------------------------------------+
bool CMtbClient::Ask(CMtbRequest &request,const int rows,const int cols,double &result[])
  {
   CMtbReply reply;
//--- the result and counts of the same shape
   ulong most_bytes=16*(ulong)rows*(ulong)cols;
   if(!Exchange(request,reply,most_bytes))
      return(false);
   if(!reply.Matrix(MTB_ROLE_RESULT,rows,cols,result))
      return(Fail(MTB_ERROR_NOT_WORKER,StringFormat("The reply of %s cannot be used: %s.",Place(),reply.fault)));
   return(true);
  }
//+------------------------------------------------------------------+
//| Is it for want of a worker that the last call failed?            |
//+------------------------------------------------------------------+
bool CMtbClient::MayComputeHere(void)
  {
   return(m_fallback && (ErrorKind()==MTB_ERROR_TESTER || ErrorKind()==MTB_ERROR_NOT_ALLOWED || ErrorKind()==MTB_ERROR_NO_WORKER || ErrorKind()==MTB_ERROR_LOST));
  }
//+------------------------------------------------------------------+
//| The same for statistics: only a worker leaves NaN out.           |
//+------------------------------------------------------------------+
bool CMtbClient::MayComputeHere(const double &data[],const int cols)
  {
   if(!MayComputeHere())
      return(false);
   for(int i=0; i<ArraySize(data); i++)
      if(data[i]!=data[i])
         return(Fail(MTB_ERROR_ARGUMENT,StringFormat("Row %d, column %d is not a number, which only a worker leaves out: start one, or remove such rows first.",i/cols,i%cols)));
   return(true);
  }
//+------------------------------------------------------------------+
//| Say once that the terminal computes. The reason stays in Error.  |
//+------------------------------------------------------------------+
bool CMtbClient::ComputedHere(const bool done)
  {
   if(!done)
      return(Fail(MTB_ERROR_ARGUMENT,"The terminal's own matrix methods could not compute it either: see the number of rows and the memory. "+Error()));
   if(!m_told)
      Print("mtbridge: the terminal computes by itself. ",Error());
   m_told=true;
   m_local=true;
   return(true);
  }
//+------------------------------------------------------------------+
//| Who gave the last answer, such as mtbridge 0.1.0, opencl on ...  |
//+------------------------------------------------------------------+
string CMtbClient::ComputedBy(void) const
  {
   if(m_local)
      return("the terminal's own matrix methods");
   return(StringFormat("%s, %s on %s",m_worker.program,m_worker.engine,m_worker.device));
  }
//+------------------------------------------------------------------+
//| A(rows x inner) times B(inner x cols).                           |
//+------------------------------------------------------------------+
bool CMtbClient::Multiply(const double &a[],const int rows,const int inner,const double &b[],const int cols,double &result[])
  {
   CMtbRequest request;
   Begin();
   if(!CheckSizes(a,rows,inner) || !CheckSizes(b,inner,cols))
      return(false);
   if((long)rows*cols>INT_MAX/16)
      return(Fail(MTB_ERROR_TOO_LARGE,StringFormat("A product of %d rows and %d columns does not fit in an MQL5 array.",rows,cols)));
   request.Begin(MTB_MULTIPLY,"");
   if(!request.Matrix(MTB_ROLE_A,a,rows,inner) || !request.Matrix(MTB_ROLE_B,b,inner,cols))
      return(Fail(MTB_ERROR_TOO_LARGE,"There is no memory left for a request."));
   if(Ask(request,rows,cols,result))
      return(true);
   return(MayComputeHere() && ComputedHere(MtbLocalMultiply(a,rows,inner,b,cols,result)));
  }
//+------------------------------------------------------------------+
//| X'X of X(rows x cols).                                           |
//+------------------------------------------------------------------+
bool CMtbClient::Gram(const double &data[],const int rows,const int cols,double &result[])
  {
   CMtbRequest request;
   Begin();
   if(!CheckSizes(data,rows,cols))
      return(false);
   request.Begin(MTB_GRAM,"");
   if((long)cols*cols>INT_MAX/16 || !request.Matrix(MTB_ROLE_DATA,data,rows,cols))
      return(Fail(MTB_ERROR_TOO_LARGE,StringFormat("A result of %d columns does not fit in an MQL5 array.",cols)));
   if(Ask(request,cols,cols,result))
      return(true);
   return(MayComputeHere() && ComputedHere(MtbLocalGram(data,rows,cols,result)));
  }
//+------------------------------------------------------------------+
//| Covariance of the columns, divided by rows-ddof.                 |
//+------------------------------------------------------------------+
bool CMtbClient::Covariance(const double &data[],const int rows,const int cols,double &result[],const int ddof)
  {
   CMtbRequest request;
   Begin();
   if(!CheckSizes(data,rows,cols))
      return(false);
   request.Begin(MTB_COVARIANCE,StringFormat("{\"ddof\": %d}",ddof));
   if((long)cols*cols>INT_MAX/16 || !request.Matrix(MTB_ROLE_DATA,data,rows,cols))
      return(Fail(MTB_ERROR_TOO_LARGE,StringFormat("A result of %d columns does not fit in an MQL5 array.",cols)));
   if(Ask(request,cols,cols,result))
      return(true);
   return(MayComputeHere(data,cols) && ComputedHere(MtbLocalCovariance(data,rows,cols,ddof,result)));
  }
//+------------------------------------------------------------------+
//| Correlation of the columns.                                      |
//+------------------------------------------------------------------+
bool CMtbClient::Correlation(const double &data[],const int rows,const int cols,double &result[])
  {
   CMtbRequest request;
   Begin();
   if(!CheckSizes(data,rows,cols))
      return(false);
   request.Begin(MTB_CORRELATION,"");
   if((long)cols*cols>INT_MAX/16 || !request.Matrix(MTB_ROLE_DATA,data,rows,cols))
      return(Fail(MTB_ERROR_TOO_LARGE,StringFormat("A result of %d columns does not fit in an MQL5 array.",cols)));
   if(Ask(request,cols,cols,result))
      return(true);
   return(MayComputeHere(data,cols) && ComputedHere(MtbLocalCorrelation(data,rows,cols,result)));
  }
//+------------------------------------------------------------------+
//| The four operations once more, for the type matrix.              |
//+------------------------------------------------------------------+
bool CMtbClient::Multiply(const matrix &a,const matrix &b,matrix &result)
  {
   double left[];
   double right[];
   double product[];
   Begin();
   if(a.Cols()!=b.Rows())
      return(Fail(MTB_ERROR_ARGUMENT,StringFormat("A has %I64u columns but B has %I64u rows.",a.Cols(),b.Rows())));
   if(!MtbFlatten(a,left) || !MtbFlatten(b,right))
      return(Fail(MTB_ERROR_TOO_LARGE,"The matrices do not fit in an MQL5 array."));
   int rows=(int)a.Rows();
   int cols=(int)b.Cols();
   return(Multiply(left,rows,(int)a.Cols(),right,cols,product) && MtbUnflatten(product,rows,cols,result));
  }
//+------------------------------------------------------------------+
//| X'X of a matrix.                                                 |
//+------------------------------------------------------------------+
bool CMtbClient::Gram(const matrix &data,matrix &result)
  {
   double flat[];
   double product[];
   int    cols=(int)data.Cols();
   if(!MtbFlatten(data,flat))
      return(Fail(MTB_ERROR_TOO_LARGE,"The matrix does not fit in an MQL5 array."));
   return(Gram(flat,(int)data.Rows(),cols,product) && MtbUnflatten(product,cols,cols,result));
  }
//+------------------------------------------------------------------+
//| Covariance of the columns of a matrix.                           |
//+------------------------------------------------------------------+
bool CMtbClient::Covariance(const matrix &data,matrix &result,const int ddof)
  {
   double flat[];
   double moments[];
   int    cols=(int)data.Cols();
   if(!MtbFlatten(data,flat))
      return(Fail(MTB_ERROR_TOO_LARGE,"The matrix does not fit in an MQL5 array."));
   return(Covariance(flat,(int)data.Rows(),cols,moments,ddof) && MtbUnflatten(moments,cols,cols,result));
  }
//+------------------------------------------------------------------+
//| Correlation of the columns of a matrix.                          |
//+------------------------------------------------------------------+
bool CMtbClient::Correlation(const matrix &data,matrix &result)
  {
   double flat[];
   double moments[];
   int    cols=(int)data.Cols();
   if(!MtbFlatten(data,flat))
      return(Fail(MTB_ERROR_TOO_LARGE,"The matrix does not fit in an MQL5 array."));
   return(Correlation(flat,(int)data.Rows(),cols,moments) && MtbUnflatten(moments,cols,cols,result));
  }
#endif
//+------------------------------------------------------------------+
