//+------------------------------------------------------------------+
//| Form.mqh - the two forms of the engine: packed panels on a       |
//| processor, tiles in registers and local memory elsewhere         |
//| As mtbridge/compute/forms.py, from the same settings of          |
//| kernels/tuned; a test compares.                                  |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_FORM_MQH
#define MTBRIDGE_FORM_MQH

#include <MtBridge/Ladder.mqh>

#define MTB_LARGE_GROUP  256             // items of a group from which on the large setting is taken
#define MTB_SMALL_GROUP  64              // taken on a processor, whose compiler needs minutes for the large one
#define MTB_SQUARE       32              // side of the squares in which panels are packed
#define MTB_MOST_SQUARES 8               // most rows of a group that packs
//--- chunks of rows on a processor, as mtbridge/compute/strips.py
#define MTB_EVEN         20              // groups for each compute unit, so that all end together
#define MTB_THINNEST     128             // rows of the smallest chunk
#define MTB_TALLEST      1024            // and of the tallest
//+------------------------------------------------------------------+
//| How a product is cut up. Fields as in class Form of forms.py.    |
//+------------------------------------------------------------------+
struct MtbForm
  {
   string            defines;
   int               left;               // width of the panels of A
   int               right;              // width of the panels of B
   int               rows;               // block of the result that a group computes
   int               columns;
   int               inner;              // the inner size is padded to a multiple of it
   int               items;              // of a group
   int               squares;            // rows of MTB_SQUARE items that pack a square, 0 on a processor
  };
//+------------------------------------------------------------------+
//| The processor's form for registers of vector_bytes; false when   |
//| the settings are not there.                                      |
//+------------------------------------------------------------------+
bool MtbPackedForm(const int item_bytes,const int vector_bytes,MtbForm &form)
  {
   string type=(item_bytes==8 ? ".float64" : ".float32");
   form.defines=MtbTuned("tuned/cpu.toml",(string)vector_bytes+type);
   if(StringLen(form.defines)==0)
      form.defines=MtbTuned("tuned/cpu.toml","0"+type);
   form.left=MtbDefined(form.defines,"MICRO_ROWS");
   form.right=MtbDefined(form.defines,"MICRO_COLUMNS");
   form.rows=MtbDefined(form.defines,"BLOCK_ROWS")*form.left;
   form.columns=MtbDefined(form.defines,"BLOCK_COLUMNS")*form.right;
   form.inner=1;
   form.items=1;
   form.squares=0;
   return(form.rows>0 && form.columns>0);
  }
//+------------------------------------------------------------------+
//| The form for groups of up to largest items; false when the       |
//| settings are not there or the device's groups are too small.     |
//+------------------------------------------------------------------+
bool MtbTiledForm(const int item_bytes,const int largest,MtbForm &form)
  {
   string type=(item_bytes==8 ? ".float64" : ".float32");
   form.defines=MtbTuned("tuned/gpu.toml",(largest>=MTB_LARGE_GROUP ? "large" : "small")+type);
   form.left=MtbDefined(form.defines,"TILE");
   form.right=form.left;
   form.rows=form.left;
   form.columns=form.left;
   form.inner=MtbDefined(form.defines,"STEP");
   int micro=MtbDefined(form.defines,"MICRO");
   if(micro<1 || form.inner<1 || largest<MTB_SMALL_GROUP)
      return(false);
   form.items=(form.left/micro)*(form.left/micro);
   form.squares=MathMin(largest/MTB_SQUARE,MTB_MOST_SQUARES);
   return(true);
  }
//+------------------------------------------------------------------+
//| The #define lines of the kernel that packs panels so wide.       |
//+------------------------------------------------------------------+
string MtbPackMacros(const MtbForm &form,const int panel,const int item_bytes)
  {
   string defines=MtbDefine("REAL_BITS",8*item_bytes)+MtbDefine("PANEL",panel);
   return(defines+MtbDefine("SQUARE",MTB_SQUARE)+MtbDefine("DOWN",form.squares));
  }
//+------------------------------------------------------------------+
//| The #define lines of multiply/packed.cl, whose strips fit the    |
//| local memory.                                                    |
//+------------------------------------------------------------------+
string MtbStripMacros(const MtbForm &form,const int item_bytes,const int local_bytes)
  {
   string defines=form.defines;
   int    deep=MtbDefined(defines,"STRIP_INNER");
   int    deepest=MathMax(local_bytes/(form.right*item_bytes),1);
   if(deepest<deep)
      StringReplace(defines,MtbDefine("STRIP_INNER",deep),MtbDefine("STRIP_INNER",deepest));
   return(defines+MtbDefine("REAL_BITS",8*item_bytes)+MtbDefine("RIGHT_LOCAL",1));
  }
//+------------------------------------------------------------------+
//| Rows of a strip that one group does, whole micro-tiles.          |
//+------------------------------------------------------------------+
int MtbChunkRows(const int rows,const int strips,const int micro,const int units)
  {
   int wanted=MathMax(MtbSteps(MTB_EVEN*units,strips),MtbSteps(rows,MTB_TALLEST));
   int chunks=MathMax(1,MathMin(wanted,rows/MTB_THINNEST));
   return(MtbSteps(MtbSteps(rows,chunks),micro)*micro);
  }
//+------------------------------------------------------------------+
//| Every block of the result: block row and block column in turn.   |
//+------------------------------------------------------------------+
bool MtbWholeGrid(const MtbForm &form,const int rows,const int cols,int &blocks[])
  {
   int down=MtbSteps(rows,form.rows);
   int across=MtbSteps(cols,form.columns);
   if(ArrayResize(blocks,2*down*across)!=2*down*across)
      return(false);
   for(int i=0; i<down*across; i++)
     {
      blocks[2*i]=i/across;
      blocks[2*i+1]=i%across;
     }
   return(true);
  }
#endif
//+------------------------------------------------------------------+
