//+------------------------------------------------------------------+
//| Kernels.mqh - the texts of kernels/ as a compiled program holds  |
//| them, and how a program for a device is put together of them     |
//| MetaEditor reads the files when it compiles: installing copies   |
//| the folder kernels to MQL5\Include\MtBridge. A path that begins  |
//| with a backslash begins in the folder MQL5.                      |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_KERNELS_MQH
#define MTBRIDGE_KERNELS_MQH

#resource "\\Include\\MtBridge\\kernels\\common.clh" as string MtbTextCommonHeader
#resource "\\Include\\MtBridge\\kernels\\probe.cl" as string MtbTextProbe
#resource "\\Include\\MtBridge\\kernels\\packed.clh" as string MtbTextPackedHeader
#resource "\\Include\\MtBridge\\kernels\\register_tiled.clh" as string MtbTextRegisterTiledHeader
#resource "\\Include\\MtBridge\\kernels\\multiply\\naive.cl" as string MtbTextNaive
#resource "\\Include\\MtBridge\\kernels\\multiply\\coalesced.cl" as string MtbTextCoalesced
#resource "\\Include\\MtBridge\\kernels\\multiply\\private_sum.cl" as string MtbTextPrivateSum
#resource "\\Include\\MtBridge\\kernels\\multiply\\row_per_item.cl" as string MtbTextRowPerItem
#resource "\\Include\\MtBridge\\kernels\\multiply\\private_row.cl" as string MtbTextPrivateRow
#resource "\\Include\\MtBridge\\kernels\\multiply\\local_column.cl" as string MtbTextLocalColumn
#resource "\\Include\\MtBridge\\kernels\\multiply\\dot4_cast.cl" as string MtbTextDot4Cast
#resource "\\Include\\MtBridge\\kernels\\multiply\\dot4.cl" as string MtbTextDot4
#resource "\\Include\\MtBridge\\kernels\\multiply\\dot8.cl" as string MtbTextDot8
#resource "\\Include\\MtBridge\\kernels\\multiply\\tiled.cl" as string MtbTextTiled
#resource "\\Include\\MtBridge\\kernels\\multiply\\tiled_padded.cl" as string MtbTextTiledPadded
#resource "\\Include\\MtBridge\\kernels\\multiply\\macro_tile.cl" as string MtbTextMacroTile
#resource "\\Include\\MtBridge\\kernels\\multiply\\register_tiled.cl" as string MtbTextRegisterTiled
#resource "\\Include\\MtBridge\\kernels\\multiply\\packed.cl" as string MtbTextPacked
#resource "\\Include\\MtBridge\\kernels\\multiply\\pack_squares.cl" as string MtbTextPackSquares
#resource "\\Include\\MtBridge\\kernels\\tuned\\cpu.toml" as string MtbTextCpuSettings
#resource "\\Include\\MtBridge\\kernels\\tuned\\gpu.toml" as string MtbTextGpuSettings
//+------------------------------------------------------------------+
//| The text of a file below kernels/; empty when it is not held.    |
//+------------------------------------------------------------------+
string MtbKernelText(const string file)
  {
   if(file=="common.clh")
      return(MtbTextCommonHeader);
   if(file=="probe.cl")
      return(MtbTextProbe);
   if(file=="packed.clh")
      return(MtbTextPackedHeader);
   if(file=="register_tiled.clh")
      return(MtbTextRegisterTiledHeader);
   if(file=="multiply/naive.cl")
      return(MtbTextNaive);
   if(file=="multiply/coalesced.cl")
      return(MtbTextCoalesced);
   if(file=="multiply/private_sum.cl")
      return(MtbTextPrivateSum);
   if(file=="multiply/row_per_item.cl")
      return(MtbTextRowPerItem);
   if(file=="multiply/private_row.cl")
      return(MtbTextPrivateRow);
   if(file=="multiply/local_column.cl")
      return(MtbTextLocalColumn);
   if(file=="multiply/dot4_cast.cl")
      return(MtbTextDot4Cast);
   if(file=="multiply/dot4.cl")
      return(MtbTextDot4);
   if(file=="multiply/dot8.cl")
      return(MtbTextDot8);
   if(file=="multiply/tiled.cl")
      return(MtbTextTiled);
   if(file=="multiply/tiled_padded.cl")
      return(MtbTextTiledPadded);
   if(file=="multiply/macro_tile.cl")
      return(MtbTextMacroTile);
   if(file=="multiply/register_tiled.cl")
      return(MtbTextRegisterTiled);
   if(file=="multiply/packed.cl")
      return(MtbTextPacked);
   if(file=="multiply/pack_squares.cl")
      return(MtbTextPackSquares);
   if(file=="tuned/cpu.toml")
      return(MtbTextCpuSettings);
   if(file=="tuned/gpu.toml")
      return(MtbTextGpuSettings);
   return("");
  }
//+------------------------------------------------------------------+
//| A whole program: #define lines, common.clh, the headers, the     |
//| file. So no include path and no build option is needed, of which |
//| MQL5 has neither. Headers are separated by commas.               |
//+------------------------------------------------------------------+
string MtbProgramText(const string defines,const string headers,const string file)
  {
   string names[];
   string text=defines+MtbKernelText("common.clh");
   int    count=StringSplit(headers,',',names);
   for(int i=0; i<count; i++)
      text+="\n"+MtbKernelText(names[i]);
   return(text+"\n"+MtbKernelText(file));
  }
//+------------------------------------------------------------------+
//| A line of a program.                                             |
//+------------------------------------------------------------------+
string MtbDefine(const string name,const int value)
  {
   return(StringFormat("#define %s %d\n",name,value));
  }
//+------------------------------------------------------------------+
//| The settings of [section] of tuned/cpu.toml or tuned/gpu.toml as |
//| #define lines; empty when there is no such section.              |
//+------------------------------------------------------------------+
string MtbTuned(const string file,const string section)
  {
   string lines[];
   string parts[];
   string defines="";
   bool   inside=false;
   int    count=StringSplit(MtbKernelText(file),'\n',lines);
   for(int i=0; i<count; i++)
     {
      StringTrimLeft(lines[i]);
      StringTrimRight(lines[i]);
      string first=StringSubstr(lines[i],0,1);
      if(first=="[")
         inside=(lines[i]=="["+section+"]");
      if(!inside || first=="#" || StringSplit(lines[i],'=',parts)!=2)
         continue;
      StringTrimRight(parts[0]);
      StringTrimLeft(parts[1]);
      defines+=MtbDefine(parts[0],(int)StringToInteger(parts[1]));
     }
   return(defines);
  }
//+------------------------------------------------------------------+
//| The value of a macro of #define lines; 0 when it is not there.   |
//+------------------------------------------------------------------+
int MtbDefined(const string defines,const string name)
  {
   string lines[];
   string words[];
   int    count=StringSplit(defines,'\n',lines);
   for(int i=0; i<count; i++)
      if(StringSplit(lines[i],' ',words)==3 && words[1]==name)
         return((int)StringToInteger(words[2]));
   return(0);
  }
#endif
//+------------------------------------------------------------------+
