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
#define MTB_INNER_STEP   128             // inner indices that an item packs where there are no squares
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
   int               squares;            // rows of MTB_SQUARE items that pack a square, 0 where one item packs
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
   if(form.squares==0)
      return(defines+MtbDefine("INNER_STEP",MTB_INNER_STEP));
   return(defines+MtbDefine("SQUARE",MTB_SQUARE)+MtbDefine("DOWN",form.squares));
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
