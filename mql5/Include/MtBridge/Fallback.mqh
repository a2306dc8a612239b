//+------------------------------------------------------------------+
//| Fallback.mqh - the same answers from the terminal's own matrix   |
//| methods, for the strategy tester and for days without a worker   |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_FALLBACK_MQH
#define MTBRIDGE_FALLBACK_MQH
//+------------------------------------------------------------------+
//| Matrix to numbers, row after row.                                |
//+------------------------------------------------------------------+
bool MtbFlatten(const matrix &source,double &values[])
  {
   int rows=(int)source.Rows();
   int cols=(int)source.Cols();
   if((long)rows*cols>INT_MAX || ArrayResize(values,rows*cols)!=rows*cols)
      return(false);
   for(int r=0; r<rows; r++)
      for(int c=0; c<cols; c++)
         values[r*cols+c]=source[r][c];
   return(true);
  }
//+------------------------------------------------------------------+
//| Numbers, row after row, to a matrix.                             |
//+------------------------------------------------------------------+
bool MtbUnflatten(const double &values[],const int rows,const int cols,matrix &target)
  {
   if(ArraySize(values)!=rows*cols)
      return(false);
   target.Init(rows,cols);
   if(target.Rows()!=(ulong)rows || target.Cols()!=(ulong)cols)
      return(false);
   for(int r=0; r<rows; r++)
      for(int c=0; c<cols; c++)
         target[r][c]=values[r*cols+c];
   return(true);
  }
//+------------------------------------------------------------------+
//| A(rows x inner) times B(inner x cols).                           |
//+------------------------------------------------------------------+
bool MtbLocalMultiply(const double &a[],const int rows,const int inner,const double &b[],const int cols,double &result[])
  {
   matrix left;
   matrix right;
   if(!MtbUnflatten(a,rows,inner,left) || !MtbUnflatten(b,inner,cols,right))
      return(false);
   matrix product=left.MatMul(right);
   return(product.Rows()==(ulong)rows && MtbFlatten(product,result));
  }
//+------------------------------------------------------------------+
//| X'X of X(rows x cols).                                           |
//+------------------------------------------------------------------+
bool MtbLocalGram(const double &data[],const int rows,const int cols,double &result[])
  {
   matrix x;
   if(!MtbUnflatten(data,rows,cols,x))
      return(false);
   matrix turned=x.Transpose();
   matrix product=turned.MatMul(x);
   return(product.Rows()==(ulong)cols && MtbFlatten(product,result));
  }
//+------------------------------------------------------------------+
//| Covariance of the columns. matrix::Cov divides by rows-1; older  |
//| builds cannot be told otherwise, so another ddof is a factor.    |
//+------------------------------------------------------------------+
bool MtbLocalCovariance(const double &data[],const int rows,const int cols,const int ddof,double &result[])
  {
   matrix x;
   if(rows<2 || rows<=ddof || !MtbUnflatten(data,rows,cols,x))
      return(false);
   matrix moments=x.Cov(false);
   if(moments.Rows()!=(ulong)cols || !MtbFlatten(moments,result))
      return(false);
   if(ddof!=1)
     {
      double factor=(double)(rows-1)/(double)(rows-ddof);
      for(int i=0; i<ArraySize(result); i++)
         result[i]*=factor;
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| Correlation of the columns.                                      |
//+------------------------------------------------------------------+
bool MtbLocalCorrelation(const double &data[],const int rows,const int cols,double &result[])
  {
   matrix x;
   if(rows<2 || !MtbUnflatten(data,rows,cols,x))
      return(false);
   matrix moments=x.CorrCoef(false);
   return(moments.Rows()==(ulong)cols && MtbFlatten(moments,result));
  }
#endif
//+------------------------------------------------------------------+
