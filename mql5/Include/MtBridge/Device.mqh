//+------------------------------------------------------------------+
//| Device.mqh - one OpenCL device of the terminal, its programs and |
//| its buffers                                                      |
//| Every handle is kept here and freed: those of a rung by Release, |
//| the rest by Close, which the destructor calls.                   |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_DEVICE_MQH
#define MTBRIDGE_DEVICE_MQH

#include <MtBridge/Ladder.mqh>

#define MTB_CODE_NO_OPENCL 5100          // no OpenCL on this computer
#define MTB_CODE_NO_DEVICE 5114          // none of the kind that was asked for
//+------------------------------------------------------------------+
//| Which device is meant.                                           |
//+------------------------------------------------------------------+
enum ENUM_MTB_DEVICE
  {
   MTB_DEVICE_ANY,                       // Whatever the terminal prefers
   MTB_DEVICE_GPU,                       // A graphics card
   MTB_DEVICE_GPU_DOUBLE,                // A graphics card with double
   MTB_DEVICE_CPU,                       // The processor
   MTB_DEVICE_NUMBER                     // By its number
  };
//+------------------------------------------------------------------+
//| A device.                                                        |
//+------------------------------------------------------------------+
class CMtbDevice
  {
private:
   int               m_context;
   int               m_programs[];
   int               m_kernels[];
   int               m_buffers[];
   MtbAbilities      m_able;
   string            m_name;
   string            m_version;
   string            m_error;

public:
                     CMtbDevice(void);
                    ~CMtbDevice(void);
   bool              Open(const ENUM_MTB_DEVICE kind,const int number);
   void              Release(void);
   void              Close(void);
   string            Name(void) const     { return(m_name);    }
   string            Version(void) const  { return(m_version); }
   string            Error(void) const    { return(m_error);   }
   MtbAbilities      Able(void) const     { return(m_able);    }
//--- what a rung takes; INVALID_HANDLE or false with a sentence in Error()
   int               Kernel(const string name,const string what,const string program);
   int               Buffer(const long bytes,const uint flags);
   bool              Memory(const int kernel,const uint index,const int buffer);
   bool              Local(const int kernel,const uint index,const int bytes);
   bool              Number(const int kernel,const uint index,const int value);
   bool              Number(const int kernel,const uint index,const long value);
   bool              Start(const int kernel,const int dimensions,const int &groups[],const int &local[]);
   int               LargestGroup(const int kernel);
   bool              Fail(const string what);

private:
   bool              Refuse(const string sentence);
   bool              Keep(int &handles[],const int handle);
   bool              Wanted(const ENUM_MTB_DEVICE kind,const int number,int &device);
   string            FirstComplaint(const string log);
   string            Told(const ENUM_OPENCL_PROPERTY_STRING property);
   int               Limit(const ENUM_OPENCL_PROPERTY_INTEGER property);
  };
//+------------------------------------------------------------------+
//| Constructor                                                      |
//+------------------------------------------------------------------+
CMtbDevice::CMtbDevice(void)
  {
   m_context=INVALID_HANDLE;
   m_able.cpu=false;
   m_able.fp64=false;
   m_able.largest_group=1;
   m_able.local_bytes=0;
   m_able.units=1;
  }
//+------------------------------------------------------------------+
//| Destructor                                                       |
//+------------------------------------------------------------------+
CMtbDevice::~CMtbDevice(void)
  {
   Close();
  }
//+------------------------------------------------------------------+
//| Open the device that is meant and ask what it can do.            |
//+------------------------------------------------------------------+
bool CMtbDevice::Open(const ENUM_MTB_DEVICE kind,const int number)
  {
   int device=0;
   Close();
   if(!Wanted(kind,number,device))
      return(false);
   ResetLastError();
   m_context=CLContextCreate(device);
   if(m_context==INVALID_HANDLE)
     {
      int code=GetLastError();
      if(code==MTB_CODE_NO_OPENCL)
         return(Refuse(StringFormat("This computer has no OpenCL (error %d): install the driver of the graphics card, or a runtime for the processor, and start the terminal again.",code)));
      if(code==MTB_CODE_NO_DEVICE)
         return(Refuse(StringFormat("There is no OpenCL device of this kind (error %d): choose another in the inputs.",code)));
      return(Fail("Opening the OpenCL device"));
     }
   m_name=Told(CL_DEVICE_NAME);
   m_version=Told(CL_DEVICE_VERSION);
   m_able.cpu=(CLGetInfoInteger(m_context,CL_DEVICE_TYPE)==CL_DEVICE_CPU);
   m_able.largest_group=Limit(CL_DEVICE_MAX_WORK_GROUP_SIZE);
   m_able.local_bytes=Limit(CL_DEVICE_LOCAL_MEM_SIZE);
   m_able.units=MathMax(Limit(CL_DEVICE_MAX_COMPUTE_UNITS),1);
   m_able.fp64=(StringFind(" "+Told(CL_DEVICE_EXTENSIONS)+" "," cl_khr_fp64 ")>=0);
   if(m_able.largest_group<1)
      return(Fail("Asking the OpenCL device for its largest group"));
   return(true);
  }
//+------------------------------------------------------------------+
//| What CLContextCreate takes for the device that is meant.         |
//+------------------------------------------------------------------+
bool CMtbDevice::Wanted(const ENUM_MTB_DEVICE kind,const int number,int &device)
  {
   switch(kind)
     {
      case MTB_DEVICE_GPU:
         device=CL_USE_GPU_ONLY;
         return(true);
      case MTB_DEVICE_GPU_DOUBLE:
         device=CL_USE_GPU_DOUBLE_ONLY;
         return(true);
      case MTB_DEVICE_CPU:
         device=CL_USE_CPU_ONLY;
         return(true);
      case MTB_DEVICE_NUMBER:
         break;
      default:
         device=CL_USE_ANY;
         return(true);
     }
   long count=CLGetInfoInteger(0,CL_DEVICE_COUNT);
   if(number<0 || number>=count)
      return(Refuse(StringFormat("There is no OpenCL device %d: this computer has %I64d, counted from 0.",number,MathMax(count,(long)0))));
   device=number;
   return(true);
  }
//+------------------------------------------------------------------+
//| A property of the device in words; empty when it tells none.     |
//+------------------------------------------------------------------+
string CMtbDevice::Told(const ENUM_OPENCL_PROPERTY_STRING property)
  {
   string text="";
   if(!CLGetInfoString(m_context,property,text))
      return("");
   StringTrimLeft(text);
   StringTrimRight(text);
   return(text);
  }
//+------------------------------------------------------------------+
//| A limit of the device; 0 when it tells none.                     |
//+------------------------------------------------------------------+
int CMtbDevice::Limit(const ENUM_OPENCL_PROPERTY_INTEGER property)
  {
   long value=CLGetInfoInteger(m_context,property);
   return((int)MathMax(MathMin(value,(long)INT_MAX),(long)0));
  }
//+------------------------------------------------------------------+
//| Build a program and return its kernel.                           |
//+------------------------------------------------------------------+
int CMtbDevice::Kernel(const string name,const string what,const string program)
  {
   string log="";
   ResetLastError();
   int built=CLProgramCreate(m_context,program,log);
   if(built==INVALID_HANDLE)
     {
      Fail("Building "+what);
      m_error+=FirstComplaint(log);
      return(INVALID_HANDLE);
     }
   if(!Keep(m_programs,built))
     {
      CLProgramFree(built);
      return(INVALID_HANDLE);
     }
   ResetLastError();
   int kernel=CLKernelCreate(built,name);
   if(kernel==INVALID_HANDLE)
     {
      Fail("Taking the kernel "+name+" of "+what);
      return(INVALID_HANDLE);
     }
   if(!Keep(m_kernels,kernel))
     {
      CLKernelFree(kernel);
      return(INVALID_HANDLE);
     }
   return(kernel);
  }
//+------------------------------------------------------------------+
//| The line of a compiler's log that says what is wrong, with a     |
//| blank before; empty when there is none.                          |
//+------------------------------------------------------------------+
string CMtbDevice::FirstComplaint(const string log)
  {
   string lines[];
   int    count=StringSplit(log,'\n',lines);
   for(int i=0; i<count; i++)
      if(StringFind(lines[i],"error")>=0)
        {
         StringTrimRight(lines[i]);
         return(" "+StringSubstr(lines[i],0,200));
        }
   return("");
  }
//+------------------------------------------------------------------+
//| A buffer; the terminal counts its bytes in a uint.               |
//+------------------------------------------------------------------+
int CMtbDevice::Buffer(const long bytes,const uint flags)
  {
   if(bytes<1 || bytes>UINT_MAX)
     {
      Refuse(StringFormat("A buffer of %I64d bytes is more than the terminal can make.",bytes));
      return(INVALID_HANDLE);
     }
   ResetLastError();
   int buffer=CLBufferCreate(m_context,(uint)bytes,flags);
   if(buffer==INVALID_HANDLE)
     {
      Fail(StringFormat("Making a buffer of %I64d bytes",bytes));
      return(INVALID_HANDLE);
     }
   if(!Keep(m_buffers,buffer))
     {
      CLBufferFree(buffer);
      return(INVALID_HANDLE);
     }
   return(buffer);
  }
//+------------------------------------------------------------------+
//| Set an argument of a kernel to a buffer.                         |
//+------------------------------------------------------------------+
bool CMtbDevice::Memory(const int kernel,const uint index,const int buffer)
  {
   ResetLastError();
   return(CLSetKernelArgMem(kernel,index,buffer) || Fail(StringFormat("Setting argument %u of a kernel",index)));
  }
//+------------------------------------------------------------------+
//| Set an argument of a kernel to local memory of its groups.       |
//+------------------------------------------------------------------+
bool CMtbDevice::Local(const int kernel,const uint index,const int bytes)
  {
   ResetLastError();
   return(CLSetKernelArgMemLocal(kernel,index,(ulong)bytes) || Fail(StringFormat("Setting argument %u of a kernel",index)));
  }
//+------------------------------------------------------------------+
//| Set an argument to an int of 4 bytes.                            |
//+------------------------------------------------------------------+
bool CMtbDevice::Number(const int kernel,const uint index,const int value)
  {
   ResetLastError();
   return(CLSetKernelArg(kernel,index,value) || Fail(StringFormat("Setting argument %u of a kernel",index)));
  }
//+------------------------------------------------------------------+
//| Set an argument to a long of 8 bytes.                            |
//+------------------------------------------------------------------+
bool CMtbDevice::Number(const int kernel,const uint index,const long value)
  {
   ResetLastError();
   return(CLSetKernelArg(kernel,index,value) || Fail(StringFormat("Setting argument %u of a kernel",index)));
  }
//+------------------------------------------------------------------+
//| Queue a kernel on whole groups, the local size said explicitly.  |
//+------------------------------------------------------------------+
bool CMtbDevice::Start(const int kernel,const int dimensions,const int &groups[],const int &local[])
  {
   uint offsets[];
   uint items[];
   uint sides[];
   if(ArrayResize(offsets,dimensions)!=dimensions || ArrayResize(items,dimensions)!=dimensions || ArrayResize(sides,dimensions)!=dimensions)
      return(Refuse("There is no memory left for the sizes of a launch."));
   for(int i=0; i<dimensions; i++)
     {
      offsets[i]=0;
      sides[i]=(uint)local[i];
      items[i]=(uint)(groups[i]*local[i]);
     }
   ResetLastError();
   return(CLExecute(kernel,(uint)dimensions,offsets,items,sides) || Fail("Starting a kernel"));
  }
//+------------------------------------------------------------------+
//| Items that a group of this kernel may have.                      |
//+------------------------------------------------------------------+
int CMtbDevice::LargestGroup(const int kernel)
  {
   long largest=CLGetInfoInteger(kernel,CL_KERNEL_WORK_GROUP_SIZE);
   return(largest<1 ? m_able.largest_group : (int)MathMin(largest,(long)m_able.largest_group));
  }
//+------------------------------------------------------------------+
//| Free what a rung took.                                           |
//+------------------------------------------------------------------+
void CMtbDevice::Release(void)
  {
   for(int i=ArraySize(m_buffers)-1; i>=0; i--)
      CLBufferFree(m_buffers[i]);
   for(int i=ArraySize(m_kernels)-1; i>=0; i--)
      CLKernelFree(m_kernels[i]);
   for(int i=ArraySize(m_programs)-1; i>=0; i--)
      CLProgramFree(m_programs[i]);
   ArrayFree(m_buffers);
   ArrayFree(m_kernels);
   ArrayFree(m_programs);
  }
//+------------------------------------------------------------------+
//| Free everything; may be called twice.                            |
//+------------------------------------------------------------------+
void CMtbDevice::Close(void)
  {
   Release();
   if(m_context!=INVALID_HANDLE)
      CLContextFree(m_context);
   m_context=INVALID_HANDLE;
   m_error="";
  }
//+------------------------------------------------------------------+
//| Say what failed, with the terminal's code and OpenCL's words.    |
//| CL_LAST_ERROR is known to builds from November 2022 on.          |
//+------------------------------------------------------------------+
bool CMtbDevice::Fail(const string what)
  {
   string words="";
   int    code=GetLastError();
   if(!CLGetInfoString(CL_LAST_ERROR,CL_ERROR_DESCRIPTION,words))
      words="OpenCL says nothing more";
   return(Refuse(StringFormat("%s failed (error %d: %s).",what,code,words)));
  }
//+------------------------------------------------------------------+
//| Remember a sentence.                                             |
//+------------------------------------------------------------------+
bool CMtbDevice::Refuse(const string sentence)
  {
   m_error=sentence;
   return(false);
  }
//+------------------------------------------------------------------+
//| Remember a handle.                                               |
//+------------------------------------------------------------------+
bool CMtbDevice::Keep(int &handles[],const int handle)
  {
   int count=ArraySize(handles);
   if(ArrayResize(handles,count+1)!=count+1)
      return(Refuse("There is no memory left to remember a handle."));
   handles[count]=handle;
   return(true);
  }
#endif
//+------------------------------------------------------------------+
