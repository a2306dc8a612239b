//+------------------------------------------------------------------+
//| Launches.mqh - what a rung of the ladder takes of a device: the  |
//| buffers, its kernels with their arguments, and one run of them   |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_LAUNCHES_MQH
#define MTBRIDGE_LAUNCHES_MQH

#include <MtBridge/Device.mqh>
#include <MtBridge/Form.mqh>
#include <MtBridge/Matrices.mqh>
//+------------------------------------------------------------------+
//| A kernel of a rung, ready to be queued.                          |
//+------------------------------------------------------------------+
struct MtbLaunch
  {
   int               kernel;
   int               dimensions;
   int               groups[2];
   int               local[2];
  };
//+------------------------------------------------------------------+
//| Times of a rung in microseconds, and its largest difference.     |
//+------------------------------------------------------------------+
struct MtbTimes
  {
   ulong             run;                // from the first launch to the end of CLBufferRead
   ulong             all;                // with CLBufferWrite of both matrices
   double            difference;         // from the serial loop; Once leaves it alone
  };
//+------------------------------------------------------------------+
//| A device, and the launches of the rung at hand.                  |
//+------------------------------------------------------------------+
class CMtbLaunches
  {
private:
   CMtbDevice        m_device;
   MtbLaunch         m_launches[3];      // pack, pack, multiply
   int               m_total;
   int               m_left;             // buffers: A, B, the product
   int               m_right;
   int               m_product;
   int               m_vector_bytes;     // of the registers that the device's compiler uses

public:
                     CMtbLaunches(void);
   bool              Open(const ENUM_MTB_DEVICE kind,const int number);
   string            Name(void) const     { return(m_device.Name());    }
   string            Version(void) const  { return(m_device.Version()); }
   string            Error(void) const    { return(m_device.Error());   }
   MtbAbilities      Able(void) const     { return(m_device.Able());    }
//--- a rung: made ready, run as often as wished, and given back
   bool              Prepare(CMtbMatrices &matrices,const MtbRung &rung);
   bool              Once(CMtbMatrices &matrices,const MtbRung &rung,MtbTimes &times);
   void              Release(void)        { m_device.Release();         }

private:
   bool              Probe(void);
   bool              Buffers(const CMtbMatrices &matrices,const bool mapped,const int item_bytes);
   bool              PrepareOne(const CMtbMatrices &matrices,const MtbRung &rung,const int item_bytes);
   bool              PrepareStrips(const CMtbMatrices &matrices,const MtbRung &rung,const int item_bytes);
   bool              PrepareForm(const CMtbMatrices &matrices,const MtbRung &rung,const int item_bytes);
   int               Pack(const MtbForm &form,const int source,const int strips,const int inner,const int panel,
                          const long inner_stride,const long strip_stride,const int item_bytes);
  };
//+------------------------------------------------------------------+
//| Constructor                                                      |
//+------------------------------------------------------------------+
CMtbLaunches::CMtbLaunches(void)
  {
   m_total=0;
   m_left=INVALID_HANDLE;
   m_right=INVALID_HANDLE;
   m_product=INVALID_HANDLE;
   m_vector_bytes=0;
  }
//+------------------------------------------------------------------+
//| Open the device and let it prove itself.                         |
//+------------------------------------------------------------------+
bool CMtbLaunches::Open(const ENUM_MTB_DEVICE kind,const int number)
  {
   if(!m_device.Open(kind,number))
      return(false);
   bool works=Probe();
   m_device.Release();
   return(works);
  }
//+------------------------------------------------------------------+
//| kernels/probe.cl: a sum, and the width of the registers.         |
//+------------------------------------------------------------------+
bool CMtbLaunches::Probe(void)
  {
   float numbers[4]={1,2,3,4};
   float answer[4]={0,0,0,0};
   int   one[1]={1};
   int   kernel=m_device.Kernel("probe","probe.cl",MtbProgramText("","","probe.cl"));
   if(kernel==INVALID_HANDLE)
      return(false);
   int source=m_device.Buffer(16,CL_MEM_READ_ONLY);
   int target=m_device.Buffer(16,CL_MEM_READ_WRITE);
   if(source==INVALID_HANDLE || target==INVALID_HANDLE || !m_device.Memory(kernel,0,source) || !m_device.Memory(kernel,1,target))
      return(false);
   ResetLastError();
   if(CLBufferWrite(source,numbers)!=4)
      return(m_device.Fail("Writing four numbers to the OpenCL device"));
   if(!m_device.Start(kernel,1,one,one))
      return(false);
   ResetLastError();
   if(CLBufferRead(target,answer)!=4 || answer[0]!=42.0 || answer[1]!=10.0)
      return(m_device.Fail("Adding 1, 2, 3 and 4 on the OpenCL device"));
   m_vector_bytes=(int)answer[2];
   return(true);
  }
//+------------------------------------------------------------------+
//| Make the buffers and the kernels of a rung; the product begins   |
//| with numbers that no kernel gives.                               |
//+------------------------------------------------------------------+
bool CMtbLaunches::Prepare(CMtbMatrices &matrices,const MtbRung &rung)
  {
   int item_bytes=matrices.ItemBytes();
   m_total=0;
   if(!Buffers(matrices,rung.mapped,item_bytes))
      return(false);
   bool ready=false;
   if(rung.runner!=MTB_RUNNER_ENGINE)
      ready=PrepareOne(matrices,rung,item_bytes);
   else
      ready=(rung.name=="packed" ? PrepareStrips(matrices,rung,item_bytes) : PrepareForm(matrices,rung,item_bytes));
   if(!ready)
      return(false);
   ResetLastError();
   if(!matrices.Poison(m_product))
      return(m_device.Fail("Writing to a buffer"));
   return(true);
  }
//+------------------------------------------------------------------+
//| Copy, launch, read. CLExecute only queues, so the clock stops    |
//| after CLBufferRead, which waits.                                 |
//+------------------------------------------------------------------+
bool CMtbLaunches::Once(CMtbMatrices &matrices,const MtbRung &rung,MtbTimes &times)
  {
   ResetLastError();
   ulong start=GetMicrosecondCount();
   if(!matrices.SendLeft(m_left) || !matrices.SendRight(m_right,rung.second))
      return(m_device.Fail("Writing to a buffer"));
   ulong copied=GetMicrosecondCount();
   for(int i=0; i<m_total; i++)
      if(!m_device.Start(m_launches[i].kernel,m_launches[i].dimensions,m_launches[i].groups,m_launches[i].local))
         return(false);
   if(!matrices.Receive(m_product))
      return(m_device.Fail("Reading the product"));
   ulong end=GetMicrosecondCount();
   times.run=MathMax(end-copied,(ulong)1);
   times.all=MathMax(end-start,(ulong)1);
   return(true);
  }
//+------------------------------------------------------------------+
//| Buffers for A, B and the product.                                |
//+------------------------------------------------------------------+
bool CMtbLaunches::Buffers(const CMtbMatrices &matrices,const bool mapped,const int item_bytes)
  {
//--- the terminal can let the driver allocate, but cannot map: the copies stay
   uint flags=CL_MEM_READ_WRITE;
   if(mapped)
      flags|=CL_MEM_ALLOC_HOST_PTR;
   long rows=matrices.Rows();
   long inner=matrices.Inner();
   long cols=matrices.Cols();
   m_left=m_device.Buffer(rows*inner*item_bytes,flags);
   if(m_left==INVALID_HANDLE)
      return(false);
   m_right=m_device.Buffer(inner*cols*item_bytes,flags);
   if(m_right==INVALID_HANDLE)
      return(false);
   m_product=m_device.Buffer(rows*cols*item_bytes,flags);
   return(m_product!=INVALID_HANDLE);
  }
//+------------------------------------------------------------------+
//| A rung with one kernel: multiply(A, B, C, rows, inner, columns). |
//+------------------------------------------------------------------+
bool CMtbLaunches::PrepareOne(const CMtbMatrices &matrices,const MtbRung &rung,const int item_bytes)
  {
   string defines=MtbMacros(rung,matrices.Inner(),matrices.Cols(),item_bytes);
   int    kernel=m_device.Kernel("multiply",rung.file,MtbProgramText(defines,rung.headers,rung.file));
   if(kernel==INVALID_HANDLE)
      return(false);
   m_launches[0].kernel=kernel;
   m_launches[0].dimensions=rung.dimensions;
   MtbLocalSize(rung,m_device.LargestGroup(kernel),m_launches[0].local);
   MtbGroups(rung,matrices.Rows(),matrices.Cols(),item_bytes,m_launches[0].local,m_launches[0].groups);
   m_total=1;
   return(m_device.Memory(kernel,0,m_left) && m_device.Memory(kernel,1,m_right) && m_device.Memory(kernel,2,m_product) &&
          m_device.Number(kernel,3,matrices.Rows()) && m_device.Number(kernel,4,matrices.Inner()) &&
          m_device.Number(kernel,5,matrices.Cols()));
  }
//+------------------------------------------------------------------+
//| The form of a processor: groups pack strips of B, and read A.    |
//+------------------------------------------------------------------+
bool CMtbLaunches::PrepareStrips(const CMtbMatrices &matrices,const MtbRung &rung,const int item_bytes)
  {
   MtbForm      form;
   MtbAbilities able=m_device.Able();
   int          rows=matrices.Rows();
   int          inner=matrices.Inner();
   int          cols=matrices.Cols();
   if(!MtbPackedForm(item_bytes,m_vector_bytes,form))
      return(m_device.Fail("Finding settings for this device"));
   string defines=MtbStripMacros(form,item_bytes,able.local_bytes);
   int    kernel=m_device.Kernel("multiply",rung.file,MtbProgramText(defines,rung.headers,rung.file));
   if(kernel==INVALID_HANDLE)
      return(false);
   int strips=MtbSteps(cols,form.right);
   int chunk=MtbChunkRows(rows,strips,form.left,able.units);
   int deep=MathMin(inner,MtbDefined(defines,"STRIP_INNER"));
   m_launches[0].kernel=kernel;
   m_launches[0].dimensions=1;
   m_launches[0].groups[0]=MtbSteps(rows,chunk)*strips;
   m_launches[0].local[0]=1;
   m_total=1;
//--- both matrices lie row by row
   return(m_device.Memory(kernel,0,m_left) && m_device.Memory(kernel,1,m_right) &&
          m_device.Local(kernel,2,deep*form.right*item_bytes) && m_device.Memory(kernel,3,m_product) &&
          m_device.Number(kernel,4,rows) && m_device.Number(kernel,5,cols) && m_device.Number(kernel,6,inner) &&
          m_device.Number(kernel,7,cols) && m_device.Number(kernel,8,chunk) &&
          m_device.Number(kernel,9,(long)inner) && m_device.Number(kernel,10,(long)1) &&
          m_device.Number(kernel,11,(long)cols) && m_device.Number(kernel,12,(long)1));
  }
//+------------------------------------------------------------------+
//| The form of other devices: pack A, pack B, multiply the panels.  |
//+------------------------------------------------------------------+
bool CMtbLaunches::PrepareForm(const CMtbMatrices &matrices,const MtbRung &rung,const int item_bytes)
  {
   MtbForm      form;
   MtbAbilities able=m_device.Able();
   int          rows=matrices.Rows();
   int          inner=matrices.Inner();
   int          cols=matrices.Cols();
   if(!MtbTiledForm(item_bytes,able.cpu ? MathMin(MTB_SMALL_GROUP,able.largest_group) : able.largest_group,form))
      return(m_device.Fail("Finding settings for this device"));
//--- the panels, A turned by its strides alone
   int left=Pack(form,m_left,rows,inner,form.left,1,inner,item_bytes);
   if(left==INVALID_HANDLE)
      return(false);
   int right=Pack(form,m_right,cols,inner,form.right,cols,1,item_bytes);
   if(right==INVALID_HANDLE)
      return(false);
//--- the blocks
   int blocks[];
   if(!MtbWholeGrid(form,rows,cols,blocks))
      return(m_device.Fail("Making room for the table of blocks"));
   int table=m_device.Buffer((long)ArraySize(blocks)*4,CL_MEM_READ_ONLY);
   if(table==INVALID_HANDLE)
      return(false);
   ResetLastError();
   if(CLBufferWrite(table,blocks)!=(uint)ArraySize(blocks))
      return(m_device.Fail("Writing the table of blocks"));
//--- the product
   string defines=form.defines+MtbDefine("REAL_BITS",8*item_bytes);
   int    kernel=m_device.Kernel("multiply",rung.file,MtbProgramText(defines,rung.headers,rung.file));
   if(kernel==INVALID_HANDLE)
      return(false);
   m_launches[2].kernel=kernel;
   m_launches[2].dimensions=1;
   m_launches[2].groups[0]=ArraySize(blocks)/2;
   m_launches[2].local[0]=form.items;
   m_total=3;
   return(m_device.Memory(kernel,0,left) && m_device.Memory(kernel,1,right) && m_device.Memory(kernel,2,m_product) &&
          m_device.Number(kernel,3,rows) && m_device.Number(kernel,4,cols) &&
          m_device.Number(kernel,5,MtbSteps(inner,form.inner)*form.inner) && m_device.Number(kernel,6,cols) &&
          m_device.Memory(kernel,7,table));
  }
//+------------------------------------------------------------------+
//| A buffer of panels, and the launch that fills it from a source   |
//| with strips x inner elements; INVALID_HANDLE when it fails.      |
//+------------------------------------------------------------------+
int CMtbLaunches::Pack(const MtbForm &form,const int source,const int strips,const int inner,const int panel,
                    const long inner_stride,const long strip_stride,const int item_bytes)
  {
   int    panels=MtbSteps(strips,panel);
   int    depth=MtbSteps(inner,form.inner)*form.inner;
   string file="multiply/pack_squares.cl";
   int    target=m_device.Buffer((long)panels*panel*depth*item_bytes,CL_MEM_READ_WRITE);
   if(target==INVALID_HANDLE)
      return(INVALID_HANDLE);
   int kernel=m_device.Kernel("pack",file,MtbProgramText(MtbPackMacros(form,panel,item_bytes),"",file));
   if(kernel==INVALID_HANDLE)
      return(INVALID_HANDLE);
   int at=m_total++;
   m_launches[at].kernel=kernel;
   m_launches[at].dimensions=2;
   m_launches[at].groups[0]=panels*panel/MTB_SQUARE;
   m_launches[at].groups[1]=MtbSteps(depth,MTB_SQUARE);
   m_launches[at].local[0]=MTB_SQUARE;
   m_launches[at].local[1]=form.squares;
   if(!m_device.Memory(kernel,0,source) || !m_device.Memory(kernel,1,target) || !m_device.Number(kernel,2,strips) ||
      !m_device.Number(kernel,3,inner) || !m_device.Number(kernel,4,depth) || !m_device.Number(kernel,5,inner_stride) ||
      !m_device.Number(kernel,6,strip_stride))
      return(INVALID_HANDLE);
   return(target);
  }
#endif
//+------------------------------------------------------------------+
