//+------------------------------------------------------------------+
//| Ladder.mq5 - the kernel ladder in the terminal: every step from  |
//| the serial loop to the tuned kernel, by the terminal's own       |
//| OpenCL functions and the very same kernels as mtbridge, checked  |
//| and timed                                                        |
//+------------------------------------------------------------------+
#property copyright "The mtbridge developers, MIT licence"
#property version   "1.00"
#property description "Needs an OpenCL device and no worker."
#property description "A kernel that runs cannot be stopped: begin with small sizes."
#property script_show_inputs

#include <MtBridge/Climb.mqh>
//+------------------------------------------------------------------+
//| The type of the elements.                                        |
//+------------------------------------------------------------------+
enum ENUM_REAL
  {
   REAL_FLOAT,                           // float
   REAL_DOUBLE                           // double
  };

input group           "Matrices"
input int             InpRows=500;                 // Rows of A
input int             InpInner=500;                // Columns of A, rows of B
input int             InpCols=500;                 // Columns of B
input ENUM_REAL       InpType=REAL_FLOAT;          // Type
input int             InpSeed=7;                   // Seed of the random numbers
input group           "Measurement"
input ENUM_MTB_DEVICE InpDevice=MTB_DEVICE_ANY;    // OpenCL device
input int             InpNumber=0;                 // Its number, if chosen by number
input int             InpRepeats=5;                // Runs of each rung, the fastest counts
input bool            InpOrders=true;              // All orders of the serial loops
//+------------------------------------------------------------------+
//| Make the matrices and climb.                                     |
//+------------------------------------------------------------------+
void Climb(CMtbClimb &climb,CMtbMatrices &matrices)
  {
   bool made=matrices.Make(InpRows,InpInner,InpCols,InpSeed);
   if(made && climb.Run(matrices,InpRepeats,InpOrders))
      return;
   if(IsStopped())
      Print("The ladder was stopped.");
   else
      if(!made)
         Print("There is no memory left for the matrices: choose smaller ones.");
  }
//+------------------------------------------------------------------+
//| Script program start function                                    |
//+------------------------------------------------------------------+
void OnStart()
  {
   long largest=INT_MAX/16;
   if(InpRows<1 || InpInner<1 || InpCols<1 || InpRepeats<1 ||
      (long)InpRows*InpInner>largest || (long)InpInner*InpCols>largest || (long)InpRows*InpCols>largest)
     {
      Print("Sizes and repeats must be 1 or more, and each matrix must fit in an MQL5 array.");
      return;
     }
   CMtbClimb climb;
   if(!climb.Open(InpDevice,InpNumber))
     {
      Print(climb.Error());
      return;
     }
   if(InpType==REAL_DOUBLE)
     {
      CMtbMatricesOf<double> matrices;
      Climb(climb,matrices);
     }
   else
     {
      CMtbMatricesOf<float> matrices;
      Climb(climb,matrices);
     }
  }
//+------------------------------------------------------------------+
