//+------------------------------------------------------------------+
//| Climb.mqh - run the rungs of the ladder one after another, check |
//| each against the serial loop, and print a line of the table      |
//+------------------------------------------------------------------+
#ifndef MTBRIDGE_CLIMB_MQH
#define MTBRIDGE_CLIMB_MQH

#include <MtBridge/Launches.mqh>
//+------------------------------------------------------------------+
//| The climb: a table, and the launches that fill its lines.        |
//+------------------------------------------------------------------+
class CMtbClimb
  {
private:
   CMtbLaunches      m_launches;
   ulong             m_serial;           // microseconds of the serial loop

public:
                     CMtbClimb(void);
   bool              Open(const ENUM_MTB_DEVICE kind,const int number);
   bool              Run(CMtbMatrices &matrices,const int repeats,const bool orders);
   string            Error(void) const    { return(m_launches.Error()); }

private:
   void              Host(CMtbMatrices &matrices,const MtbRung &rung);
   void              Rung(CMtbMatrices &matrices,const MtbRung &rung,const int repeats);
   bool              Measure(CMtbMatrices &matrices,const MtbRung &rung,const int repeats,MtbTimes &times);
   string            Note(const MtbRung &rung);
   void              Line(const CMtbMatrices &matrices,const string name,const MtbTimes &times,const bool copies,const string note);
  };
//+------------------------------------------------------------------+
//| Constructor                                                      |
//+------------------------------------------------------------------+
CMtbClimb::CMtbClimb(void)
  {
   m_serial=1;
  }
//+------------------------------------------------------------------+
//| Open the device and say what it is.                              |
//+------------------------------------------------------------------+
bool CMtbClimb::Open(const ENUM_MTB_DEVICE kind,const int number)
  {
   if(!m_launches.Open(kind,number))
      return(false);
   MtbAbilities able=m_launches.Able();
   PrintFormat("%s, %s: groups of up to %d items, %d bytes of local memory, %s",m_launches.Name(),m_launches.Version(),
               able.largest_group,able.local_bytes,able.fp64 ? "float and double" : "float only");
   return(true);
  }
//+------------------------------------------------------------------+
//| The whole ladder; false when the program was stopped or the      |
//| table did not fit into memory. The serial loop runs first.       |
//+------------------------------------------------------------------+
bool CMtbClimb::Run(CMtbMatrices &matrices,const int repeats,const bool orders)
  {
   CMtbLadder ladder;
   if(!ladder.Complete())
     {
      Print("There is no memory left for the table of rungs.");
      return(false);
     }
   PrintFormat("A %d x %d times B %d x %d in %s, fastest of %d; differences from the serial loop, rounding explains %.1e",
               matrices.Rows(),matrices.Inner(),matrices.Inner(),matrices.Cols(),matrices.Type(),repeats,matrices.Bound());
   ulong start=GetMicrosecondCount();
   if(!matrices.Loops("r-cr-c"))
      return(false);
   m_serial=MathMax(GetMicrosecondCount()-start,(ulong)1);
   matrices.Keep();
   PrintFormat("%-18s %11s %11s %9s %9s %11s","rung","ms","with copies","GFLOP/s","ratio","difference");
   for(int i=0; i<ladder.Total(); i++)
     {
      if(IsStopped())
         return(false);
      MtbRung rung=ladder.At(i);
      if(rung.runner!=MTB_RUNNER_HOST)
         Rung(matrices,rung,repeats);
      else
         if(orders || rung.name=="serial")
            Host(matrices,rung);
     }
   return(!IsStopped());
  }
//+------------------------------------------------------------------+
//| A loop of the host; the serial one has been timed already.       |
//+------------------------------------------------------------------+
void CMtbClimb::Host(CMtbMatrices &matrices,const MtbRung &rung)
  {
   MtbTimes times={0,0,0.0};
   times.run=m_serial;
   if(rung.name!="serial")
     {
      ulong start=GetMicrosecondCount();
      if(!(rung.name=="serial_vectorised" ? matrices.LoopsAsWritten() : matrices.Loops(rung.order)))
         return;
      times.run=MathMax(GetMicrosecondCount()-start,(ulong)1);
      times.difference=matrices.Difference();
     }
   Line(matrices,rung.name,times,false,"");
  }
//+------------------------------------------------------------------+
//| A rung of the device: its line, or why there is none.            |
//+------------------------------------------------------------------+
void CMtbClimb::Rung(CMtbMatrices &matrices,const MtbRung &rung,const int repeats)
  {
   MtbTimes times={0,0,0.0};
   string   reason=MtbHindrance(rung,m_launches.Able(),matrices.ItemBytes());
   if(StringLen(reason)>0)
     {
      PrintFormat("%-18s not run: %s",rung.name,reason);
      return;
     }
   bool done=Measure(matrices,rung,repeats,times);
   m_launches.Release();
   if(!done)
      PrintFormat("%-18s not run: %s",rung.name,m_launches.Error());
   else
      if(times.difference>matrices.Bound())
         PrintFormat("%-18s wrong: its difference %.2e is past the bound %.2e",rung.name,times.difference,matrices.Bound());
      else
         Line(matrices,rung.name,times,true,Note(rung));
  }
//+------------------------------------------------------------------+
//| Run it once and check, then time it.                             |
//+------------------------------------------------------------------+
bool CMtbClimb::Measure(CMtbMatrices &matrices,const MtbRung &rung,const int repeats,MtbTimes &times)
  {
   if(!m_launches.Prepare(matrices,rung))
      return(false);
   MtbTimes now={0,0,0.0};
   if(!m_launches.Once(matrices,rung,now))
      return(false);
   times.difference=matrices.Difference();
   times.run=now.run;
   times.all=now.all;
   for(int i=0; i<repeats && times.difference<=matrices.Bound(); i++)
     {
      if(IsStopped())
         return(true);
      if(!m_launches.Once(matrices,rung,now))
         return(false);
      times.run=(i==0 ? now.run : MathMin(times.run,now.run));
      times.all=(i==0 ? now.all : MathMin(times.all,now.all));
     }
   return(true);
  }
//+------------------------------------------------------------------+
//| In what a rung differs from the one in the other tables.         |
//+------------------------------------------------------------------+
string CMtbClimb::Note(const MtbRung &rung)
  {
   MtbAbilities able=m_launches.Able();
   if(rung.mapped)
      return("  copied: the terminal cannot map");
   return(rung.name=="register_tiled" && able.cpu ? "  the small setting" : "");
  }
//+------------------------------------------------------------------+
//| A line of the table; a loop of the host has no copies.           |
//+------------------------------------------------------------------+
void CMtbClimb::Line(const CMtbMatrices &matrices,const string name,const MtbTimes &times,const bool copies,const string note)
  {
   double milliseconds=(double)times.run/1000.0;
   double operations=2.0*matrices.Rows()*matrices.Inner()*matrices.Cols();
   string all=(copies ? StringFormat("%.3f",(double)times.all/1000.0) : "");
   PrintFormat("%-18s %11.3f %11s %9.2f %9.2f %11.2e%s",name,milliseconds,all,operations/milliseconds/1000000.0,
               (double)m_serial/(double)times.run,times.difference,note);
  }
#endif
//+------------------------------------------------------------------+
