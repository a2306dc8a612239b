//+------------------------------------------------------------------+
//| Matrices.mqh - the two matrices of a climb, in float or double:  |
//| made, multiplied by loops, brought to a device and back          |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_MATRICES_MQH
#define MTBRIDGE_MATRICES_MQH

#include <MtBridge/Ladder.mqh>

#define MTB_POISON 1e30                  // what a kernel that does not write leaves behind
//+------------------------------------------------------------------+
//| What does not depend on the type.                                |
//+------------------------------------------------------------------+
class CMtbMatrices
  {
protected:
   int               m_rows;
   int               m_inner;
   int               m_cols;
   double            m_bound;

public:
                     CMtbMatrices(void)   { m_rows=0; m_inner=0; m_cols=0; m_bound=0.0; }
   virtual          ~CMtbMatrices(void)   { }
   int               Rows(void) const     { return(m_rows);  }
   int               Inner(void) const    { return(m_inner); }
   int               Cols(void) const     { return(m_cols);  }
//--- the largest difference that rounding explains
   double            Bound(void) const    { return(m_bound); }
   virtual string    Type(void)=0;
   virtual int       ItemBytes(void)=0;
   virtual bool      Make(const int rows,const int inner,const int cols,const int seed)=0;
//--- loops of the host; false when the program was stopped
   virtual bool      Loops(const string order)=0;
   virtual bool      LoopsAsWritten(void)=0;
   virtual void      Keep(void)=0;
   virtual double    Difference(void)=0;
//--- to and from the device
   virtual bool      SendLeft(const int buffer)=0;
   virtual bool      SendRight(const int buffer,const ENUM_MTB_LAYOUT layout)=0;
   virtual bool      Poison(const int buffer)=0;
   virtual bool      Receive(const int buffer)=0;
  };
//+------------------------------------------------------------------+
//| A, B, their product and the product that counts, row after row.  |
//+------------------------------------------------------------------+
template<typename TReal>
class CMtbMatricesOf : public CMtbMatrices
  {
private:
   TReal             m_a[];
   TReal             m_b[];
   TReal             m_b_turned[];       // column after column
   TReal             m_product[];
   TReal             m_reference[];

public:
   virtual string    Type(void) override      { return(sizeof(TReal)==8 ? "double" : "float"); }
   virtual int       ItemBytes(void) override { return((int)sizeof(TReal)); }
//--- Random matrices; false without memory, or when stopped. An
//--- element is a sum of inner products, and two such sums differ by
//--- at most inner * eps * |row of A| |column of B|.
   virtual bool      Make(const int rows,const int inner,const int cols,const int seed) override
     {
      m_rows=rows;
      m_inner=inner;
      m_cols=cols;
      bool room=(ArrayResize(m_a,rows*inner)==rows*inner && ArrayResize(m_b,inner*cols)==inner*cols);
      room=(room && ArrayResize(m_b_turned,inner*cols)==inner*cols);
      room=(room && ArrayResize(m_product,rows*cols)==rows*cols && ArrayResize(m_reference,rows*cols)==rows*cols);
      if(!room)
         return(false);
      MathSrand(seed);
      if(!Randomize(m_a) || !Randomize(m_b))
         return(false);
      for(int c=0; c<cols; c++)
        {
         if(IsStopped())
            return(false);
         for(int k=0; k<inner; k++)
            m_b_turned[c*inner+k]=m_b[k*cols+c];
        }
      double epsilon=(sizeof(TReal)==8 ? DBL_EPSILON : FLT_EPSILON);
      m_bound=inner*epsilon*Longest(m_a,rows)*Longest(m_b_turned,cols);
      return(true);
     }
//--- One loop nest for all six orders: what an index adds to the
//--- places in A, B and C is all that an order changes.
   virtual bool      Loops(const string order) override
     {
      string letters[];
      int    size[3];
      int    a[3];
      int    b[3];
      int    c[3];
      if(StringSplit(order,'-',letters)!=3)
         return(false);
      for(int i=0; i<3; i++)
        {
         bool down=(letters[i]=="r");
         bool across=(letters[i]=="c");
         size[i]=(down ? m_rows : across ? m_cols : m_inner);
         a[i]=(down ? m_inner : across ? 0 : 1);
         b[i]=(down ? 0 : across ? 1 : m_cols);
         c[i]=(down ? m_cols : across ? 1 : 0);
        }
      int step_a=a[2];
      int step_b=b[2];
      int step_c=c[2];
      ArrayInitialize(m_product,0);
      for(int i=0; i<size[0]; i++)
         for(int j=0; j<size[1]; j++)
           {
            if(j%1024==0 && IsStopped())
               return(false);
            int at_a=i*a[0]+j*a[1];
            int at_b=i*b[0]+j*b[1];
            int at_c=i*c[0]+j*c[1];
            for(int k=0; k<size[2]; k++)
              {
               m_product[at_c]+=m_a[at_a]*m_b[at_b];
               at_a+=step_a;
               at_b+=step_b;
               at_c+=step_c;
              }
           }
      return(true);
     }
//--- r-cr-c as one writes it, so that a compiler may use vectors.
   virtual bool      LoopsAsWritten(void) override
     {
      ArrayInitialize(m_product,0);
      for(int r=0; r<m_rows; r++)
         for(int k=0; k<m_inner; k++)
           {
            if(k%1024==0 && IsStopped())
               return(false);
            TReal factor=m_a[r*m_inner+k];
            for(int c=0; c<m_cols; c++)
               m_product[r*m_cols+c]+=factor*m_b[k*m_cols+c];
           }
      return(true);
     }
//--- The last product is what others are compared with.
   virtual void      Keep(void) override
     {
      for(int i=0; i<m_rows*m_cols; i++)
         m_reference[i]=m_product[i];
     }
//--- Largest difference of the last product; what is no number is
//--- as far off as can be.
   virtual double    Difference(void) override
     {
      double worst=0.0;
      for(int i=0; i<m_rows*m_cols; i++)
        {
         double difference=MathAbs((double)m_product[i]-(double)m_reference[i]);
         if(!MathIsValidNumber(difference))
            return(DBL_MAX);
         worst=MathMax(worst,difference);
        }
      return(worst);
     }
   virtual bool      SendLeft(const int buffer) override
     {
      return(CLBufferWrite(buffer,m_a)==(uint)(m_rows*m_inner));
     }
   virtual bool      SendRight(const int buffer,const ENUM_MTB_LAYOUT layout) override
     {
      if(layout==MTB_LAYOUT_COLUMNS)
         return(CLBufferWrite(buffer,m_b_turned)==(uint)(m_inner*m_cols));
      return(CLBufferWrite(buffer,m_b)==(uint)(m_inner*m_cols));
     }
   virtual bool      Poison(const int buffer) override
     {
      ArrayInitialize(m_product,(TReal)MTB_POISON);
      return(CLBufferWrite(buffer,m_product)==(uint)(m_rows*m_cols));
     }
   virtual bool      Receive(const int buffer) override
     {
      return(CLBufferRead(buffer,m_product)==(uint)(m_rows*m_cols));
     }

private:
//--- Numbers between -1 and 1; false when the program was stopped.
   bool              Randomize(TReal &values[])
     {
      int count=ArraySize(values);
      for(int i=0; i<count; i++)
        {
         if(i%65536==0 && IsStopped())
            return(false);
         values[i]=(TReal)((MathRand()-16383.5)/16383.5);
        }
      return(true);
     }
//--- Length of the longest vector of m_inner elements.
   double            Longest(const TReal &values[],const int count)
     {
      double longest=0.0;
      for(int i=0; i<count; i++)
        {
         double sum=0.0;
         for(int k=0; k<m_inner; k++)
            sum+=(double)values[i*m_inner+k]*(double)values[i*m_inner+k];
         longest=MathMax(longest,sum);
        }
      return(MathSqrt(longest));
     }
  };
#endif
//+------------------------------------------------------------------+
