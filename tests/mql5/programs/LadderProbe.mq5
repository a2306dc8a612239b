//+------------------------------------------------------------------+
//| LadderProbe.mq5 - print the launch table, its rules at the sizes |
//| that a test names, the forms, and the texts of the kernels       |
//+------------------------------------------------------------------+
#include <MtBridge/Form.mqh>

input string InpCases="";                // rows,inner,cols,bytes of an item,largest group; separated by blanks
input string InpFiles="";                // Files below kernels/, separated by commas
input int    InpLocalBytes=32768;        // Abilities of a device
input int    InpUnits=2;
input bool   InpCpu=true;
input bool   InpDouble=true;
//+------------------------------------------------------------------+
//| The table, a line a rung.                                        |
//+------------------------------------------------------------------+
void Table(CMtbLadder &ladder)
  {
   for(int i=0; i<ladder.Total(); i++)
     {
      MtbRung rung=ladder.At(i);
      string  walks="";
      for(int d=0; d<rung.dimensions; d++)
         walks+=StringFormat(" %s:%d:%d",rung.walks[d].along==MTB_ALONG_ROWS ? "rows" : "columns",rung.walks[d].step,rung.walks[d].local);
      PrintFormat("rung|%s|%d|%s|%s|%s|%d|%s|%s|%d|%s",rung.name,(int)rung.runner,rung.file,rung.headers,rung.order,
                  (int)rung.second,walks,(string)rung.fixed,rung.local_elements,(string)rung.mapped);
     }
  }
//+------------------------------------------------------------------+
//| Launches, macros and hindrances of all rungs of the device.      |
//+------------------------------------------------------------------+
void Launches(CMtbLadder &ladder,const string label,const int rows,const int inner,const int cols,const int item_bytes,const int largest)
  {
   MtbAbilities able;
   able.cpu=InpCpu;
   able.fp64=InpDouble;
   able.largest_group=largest;
   able.local_bytes=InpLocalBytes;
   able.units=InpUnits;
   for(int i=0; i<ladder.Total(); i++)
     {
      MtbRung rung=ladder.At(i);
      int     local[2]={0,0};
      int     groups[2]={0,0};
      if(rung.runner==MTB_RUNNER_HOST)
         continue;
      PrintFormat("hindrance|%s|%s|%s",label,rung.name,MtbHindrance(rung,able,item_bytes));
      if(rung.runner!=MTB_RUNNER_KERNEL)
         continue;
      MtbLocalSize(rung,largest,local);
      MtbGroups(rung,rows,cols,item_bytes,local,groups);
      string macros=MtbMacros(rung,inner,cols,item_bytes);
      PrintFormat("launch|%s|%s|%d %d|%d %d|%d %d",label,rung.name,local[0],local[1],groups[0],groups[1],
                  MtbDefined(macros,"REAL_BITS"),MtbDefined(macros,"WHOLE_ROWS"));
     }
  }
//+------------------------------------------------------------------+
//| A form and its grid of blocks.                                   |
//+------------------------------------------------------------------+
void Form(const string label,const MtbForm &form,const int rows,const int cols,const int item_bytes)
  {
   string lines[];
   string macros="";
   string grid="";
   int    blocks[];
   int    count=StringSplit(form.defines+MtbPackMacros(form,form.right,item_bytes),'\n',lines);
   for(int i=0; i<count; i++)
      macros+=StringSubstr(lines[i],StringLen("#define "))+",";
   if(MtbWholeGrid(form,rows,cols,blocks))
      for(int i=0; i<ArraySize(blocks); i++)
         grid+=StringFormat(" %d",blocks[i]);
   PrintFormat("%s|%s|%d %d %d %d %d %d %d|%s",label,macros,form.left,form.right,form.rows,form.columns,form.inner,
               form.items,form.squares,grid);
  }
//+------------------------------------------------------------------+
//| The form of a processor: its macros, micro-tile, block and chunk.|
//+------------------------------------------------------------------+
void Strips(const string label,const MtbForm &form,const int rows,const int cols,const int item_bytes)
  {
   string lines[];
   string macros="";
   int    count=StringSplit(MtbStripMacros(form,item_bytes,InpLocalBytes),'\n',lines);
   for(int i=0; i<count; i++)
      macros+=StringSubstr(lines[i],StringLen("#define "))+",";
   PrintFormat("%s|%s|%d %d %d %d %d|%d",label,macros,form.left,form.right,form.rows,form.columns,form.squares,
               MtbChunkRows(rows,MtbSteps(cols,form.right),form.left,InpUnits));
  }
//+------------------------------------------------------------------+
//| Script program start function                                    |
//+------------------------------------------------------------------+
void OnStart()
  {
   CMtbLadder ladder;
   string     cases[];
   string     files[];
   string     numbers[];
   Table(ladder);
   int count=StringSplit(InpCases,' ',cases);
   for(int i=0; i<count; i++)
     {
      if(StringSplit(cases[i],',',numbers)!=5)
         continue;
      int rows=(int)StringToInteger(numbers[0]);
      int inner=(int)StringToInteger(numbers[1]);
      int cols=(int)StringToInteger(numbers[2]);
      int item_bytes=(int)StringToInteger(numbers[3]);
      int largest=(int)StringToInteger(numbers[4]);
      Launches(ladder,cases[i],rows,inner,cols,item_bytes,largest);
      MtbForm form;
      if(MtbTiledForm(item_bytes,largest,form))
         Form("tiled|"+cases[i],form,rows,cols,item_bytes);
      for(int bytes=0; bytes<=64; bytes=(bytes==0 ? 16 : bytes*2))
         if(MtbPackedForm(item_bytes,bytes,form))
            Strips(StringFormat("packed %d|",bytes)+cases[i],form,rows,cols,item_bytes);
     }
   count=StringSplit(InpFiles,',',files);
   for(int i=0; i<count; i++)
      PrintFormat("text|%s|%d",files[i],StringLen(MtbKernelText(files[i])));
  }
//+------------------------------------------------------------------+
