//+------------------------------------------------------------------+
//| Ladder.mqh - the launch table of the kernel ladder, in order     |
//| The same table as mtbridge/compute/ladder.py: names, files,      |
//| launches, macros; a test compares the two, row by row.           |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_LADDER_MQH
#define MTBRIDGE_LADDER_MQH

#include <MtBridge/Kernels.mqh>

#define MTB_TEXEL_BYTES 16               // one element of an image
#define MTB_CHUNK       1024             // CHUNK of the kernels that copy a column
//+------------------------------------------------------------------+
//| Where a rung runs: a loop of the host, one kernel, or a form of  |
//| the engine with kernels that pack.                               |
//+------------------------------------------------------------------+
enum ENUM_MTB_RUNNER
  {
   MTB_RUNNER_HOST,
   MTB_RUNNER_KERNEL,
   MTB_RUNNER_ENGINE
  };
//+------------------------------------------------------------------+
//| How the second matrix lies.                                      |
//+------------------------------------------------------------------+
enum ENUM_MTB_LAYOUT
  {
   MTB_LAYOUT_ROWS,                      // row after row
   MTB_LAYOUT_COLUMNS,                   // column after column
   MTB_LAYOUT_IMAGE,                     // an image
   MTB_LAYOUT_PANELS                     // packed by kernels
  };
//+------------------------------------------------------------------+
//| What a dimension of the launch walks along.                      |
//+------------------------------------------------------------------+
enum ENUM_MTB_ALONG
  {
   MTB_ALONG_ROWS,
   MTB_ALONG_COLUMNS
  };
//+------------------------------------------------------------------+
//| One dimension of a launch: an item takes step elements; 0 means  |
//| one texel of an image.                                           |
//+------------------------------------------------------------------+
struct MtbWalk
  {
   ENUM_MTB_ALONG    along;
   int               step;
   int               local;              // local size, where the device allows it
  };
//+------------------------------------------------------------------+
//| One step of the ladder. Fields as in class Rung of ladder.py.    |
//+------------------------------------------------------------------+
struct MtbRung
  {
   string            name;
   ENUM_MTB_RUNNER   runner;
   string            file;               // below kernels/, empty on the host
   string            headers;            // between common.clh and the file, separated by commas
   string            order;              // loops of a serial rung from the outside in
   ENUM_MTB_LAYOUT   second;
   int               dimensions;
   MtbWalk           walks[2];
   bool              fixed;              // the kernel requires the local size
   int               local_elements;     // of local memory that a group takes
   bool              mapped;             // buffers that the driver allocates
  };
//+------------------------------------------------------------------+
//| What a device has that a rung may need.                          |
//+------------------------------------------------------------------+
struct MtbAbilities
  {
   bool              cpu;
   bool              fp64;
   int               largest_group;
   int               local_bytes;
   int               units;              // that compute at the same time
  };
//+------------------------------------------------------------------+
//| The rungs in order.                                              |
//+------------------------------------------------------------------+
class CMtbLadder
  {
private:
   MtbRung           m_rungs[];
   bool              m_complete;

public:
                     CMtbLadder(void);
   bool              Complete(void) const { return(m_complete);           }
   int               Total(void) const    { return(ArraySize(m_rungs));   }
   MtbRung           At(const int index)  { return(m_rungs[index]);       }

private:
   int               Append(const string name,const ENUM_MTB_RUNNER runner,const string file);
   void              Serial(const string name,const string order);
   void              Items(const string name,const string file,const ENUM_MTB_LAYOUT second);
   void              RowItems(const string name,const string file,const int local_elements);
   void              Tiles(const string name,const string file,const int local_elements);
   void              Registers(const string name,const string file,const ENUM_MTB_LAYOUT second,
                               const int columns,const int rows,const int local_x,const int local_y);
   void              Engine(const string name,const string file,const string header);
   void              Walk(const int index,const ENUM_MTB_ALONG along,const int step,const int local);
  };
//+------------------------------------------------------------------+
//| The table.                                                       |
//+------------------------------------------------------------------+
CMtbLadder::CMtbLadder(void)
  {
   m_complete=true;
//--- the MQL5 article
   Serial("serial_r_c_cr","r-c-cr");
   Serial("serial_c_r_cr","c-r-cr");
   Serial("serial_c_cr_r","c-cr-r");
   Serial("serial_cr_c_r","cr-c-r");
   Serial("serial_cr_r_c","cr-r-c");
   Serial("serial","r-cr-c");
   Serial("serial_vectorised","r-cr-c");
   Items("naive","naive.cl",MTB_LAYOUT_ROWS);
   Items("coalesced","coalesced.cl",MTB_LAYOUT_COLUMNS);
   Items("private_sum","private_sum.cl",MTB_LAYOUT_COLUMNS);
   RowItems("row_per_item","row_per_item.cl",0);
   RowItems("private_row","private_row.cl",0);
   RowItems("local_column","local_column.cl",MTB_CHUNK);
   RowItems("dot4_cast","dot4_cast.cl",MTB_CHUNK);
   RowItems("dot4","dot4.cl",MTB_CHUNK);
   RowItems("dot8","dot8.cl",MTB_CHUNK);
//--- the memory article
   Tiles("tiled","tiled.cl",2*16*16);
   Tiles("tiled_padded","tiled_padded.cl",2*16*17);
//--- the Adreno article
   Registers("macro_tile","macro_tile.cl",MTB_LAYOUT_ROWS,8,4,8,8);
   Registers("texture","texture.cl",MTB_LAYOUT_IMAGE,0,8,16,8);
//--- beyond
   Engine("register_tiled","register_tiled.cl","register_tiled.clh");
   Engine("packed","packed.cl","packed.clh");
  }
//+------------------------------------------------------------------+
//| A rung with nothing set but what all have; -1 without memory.    |
//+------------------------------------------------------------------+
int CMtbLadder::Append(const string name,const ENUM_MTB_RUNNER runner,const string file)
  {
   int index=ArraySize(m_rungs);
   if(!m_complete || ArrayResize(m_rungs,index+1)!=index+1)
     {
      m_complete=false;
      return(-1);
     }
   m_rungs[index].name=name;
   m_rungs[index].runner=runner;
   m_rungs[index].file=(StringLen(file)>0 ? "multiply/"+file : "");
   m_rungs[index].headers="";
   m_rungs[index].order="";
   m_rungs[index].second=MTB_LAYOUT_ROWS;
   m_rungs[index].dimensions=0;
   m_rungs[index].fixed=false;
   m_rungs[index].local_elements=0;
   m_rungs[index].mapped=false;
   return(index);
  }
//+------------------------------------------------------------------+
//| A loop of the host.                                              |
//+------------------------------------------------------------------+
void CMtbLadder::Serial(const string name,const string order)
  {
   int index=Append(name,MTB_RUNNER_HOST,"");
   if(index>=0)
      m_rungs[index].order=order;
  }
//+------------------------------------------------------------------+
//| An item an element, dimension 0 down the rows.                   |
//+------------------------------------------------------------------+
void CMtbLadder::Items(const string name,const string file,const ENUM_MTB_LAYOUT second)
  {
   int index=Append(name,MTB_RUNNER_KERNEL,file);
   if(index<0)
      return;
   m_rungs[index].second=second;
   Walk(index,MTB_ALONG_ROWS,1,16);
   Walk(index,MTB_ALONG_COLUMNS,1,16);
  }
//+------------------------------------------------------------------+
//| An item a row.                                                   |
//+------------------------------------------------------------------+
void CMtbLadder::RowItems(const string name,const string file,const int local_elements)
  {
   int index=Append(name,MTB_RUNNER_KERNEL,file);
   if(index<0)
      return;
   m_rungs[index].second=MTB_LAYOUT_COLUMNS;
   m_rungs[index].local_elements=local_elements;
   Walk(index,MTB_ALONG_ROWS,1,64);
  }
//+------------------------------------------------------------------+
//| Square tiles in local memory.                                    |
//+------------------------------------------------------------------+
void CMtbLadder::Tiles(const string name,const string file,const int local_elements)
  {
   int index=Append(name,MTB_RUNNER_KERNEL,file);
   if(index<0)
      return;
   m_rungs[index].fixed=true;
   m_rungs[index].local_elements=local_elements;
   Walk(index,MTB_ALONG_COLUMNS,1,16);
   Walk(index,MTB_ALONG_ROWS,1,16);
  }
//+------------------------------------------------------------------+
//| Several sums in the registers of an item.                        |
//+------------------------------------------------------------------+
void CMtbLadder::Registers(const string name,const string file,const ENUM_MTB_LAYOUT second,
                           const int columns,const int rows,const int local_x,const int local_y)
  {
   int index=Append(name,MTB_RUNNER_KERNEL,file);
   if(index<0)
      return;
   m_rungs[index].second=second;
   m_rungs[index].mapped=true;
   Walk(index,MTB_ALONG_COLUMNS,columns,local_x);
   Walk(index,MTB_ALONG_ROWS,rows,local_y);
  }
//+------------------------------------------------------------------+
//| A form of the engine; its launches are in Form.mqh.              |
//+------------------------------------------------------------------+
void CMtbLadder::Engine(const string name,const string file,const string header)
  {
   int index=Append(name,MTB_RUNNER_ENGINE,file);
   if(index<0)
      return;
   m_rungs[index].headers=header;
   m_rungs[index].second=MTB_LAYOUT_PANELS;
  }
//+------------------------------------------------------------------+
//| The next dimension of a launch.                                  |
//+------------------------------------------------------------------+
void CMtbLadder::Walk(const int index,const ENUM_MTB_ALONG along,const int step,const int local)
  {
   int at=m_rungs[index].dimensions;
   m_rungs[index].walks[at].along=along;
   m_rungs[index].walks[at].step=step;
   m_rungs[index].walks[at].local=local;
   m_rungs[index].dimensions=at+1;
  }
//+------------------------------------------------------------------+
//| How many steps it takes to walk along a size.                    |
//+------------------------------------------------------------------+
int MtbSteps(const int size,const int step)
  {
   return((size+step-1)/step);
  }
//+------------------------------------------------------------------+
//| The local size: the longest side is halved until a group has at  |
//| most largest items, unless the kernel requires the size.         |
//+------------------------------------------------------------------+
void MtbLocalSize(const MtbRung &rung,const int largest,int &local[])
  {
   int items=1;
   for(int i=0; i<rung.dimensions; i++)
     {
      local[i]=rung.walks[i].local;
      items*=local[i];
     }
   while(items>largest && items>1 && !rung.fixed)
     {
      int longest=0;
      for(int i=1; i<rung.dimensions; i++)
         if(local[i]>local[longest])
            longest=i;
      local[longest]=MathMax(local[longest]/2,1);
      items=1;
      for(int i=0; i<rung.dimensions; i++)
         items*=local[i];
     }
  }
//+------------------------------------------------------------------+
//| How many groups cover the result.                                |
//+------------------------------------------------------------------+
void MtbGroups(const MtbRung &rung,const int rows,const int cols,const int item_bytes,const int &local[],int &groups[])
  {
   for(int i=0; i<rung.dimensions; i++)
     {
      int size=(rung.walks[i].along==MTB_ALONG_ROWS ? rows : cols);
      int step=(rung.walks[i].step>0 ? rung.walks[i].step : MTB_TEXEL_BYTES/item_bytes);
      groups[i]=MtbSteps(MtbSteps(size,step),local[i]);
     }
  }
//+------------------------------------------------------------------+
//| The #define lines of a rung with one kernel.                     |
//+------------------------------------------------------------------+
string MtbMacros(const MtbRung &rung,const int inner,const int cols,const int item_bytes)
  {
   string defines=MtbDefine("REAL_BITS",8*item_bytes);
   if(rung.name=="macro_tile")
      defines+=MtbDefine("WHOLE_ROWS",inner%4==0 && cols%4==0 ? 1 : 0);
   return(defines);
  }
//+------------------------------------------------------------------+
//| Why a rung cannot run; empty where it can.                       |
//+------------------------------------------------------------------+
string MtbHindrance(const MtbRung &rung,const MtbAbilities &able,const int item_bytes)
  {
   if(item_bytes==8 && !able.fp64)
      return("the device has no fp64");
   if(rung.second==MTB_LAYOUT_IMAGE)
      return("the terminal's OpenCL functions know buffers and no images");
   int items=1;
   for(int i=0; i<rung.dimensions; i++)
      items*=rung.walks[i].local;
   if(rung.fixed && items>able.largest_group)
      return(StringFormat("groups of %d items are more than the device's %d",items,able.largest_group));
   int needed=rung.local_elements*item_bytes;
   if(needed>able.local_bytes)
      return(StringFormat("it needs %d bytes of local memory and the device has %d",needed,able.local_bytes));
   if(rung.name=="packed" && !able.cpu)
      return("one work-item a group: a form for processors");
   return("");
  }
#endif
//+------------------------------------------------------------------+
