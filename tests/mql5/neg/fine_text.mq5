// fine: ab//c 3 big 10
void OnStart()
  {
   int    n=3;       /* not "a text */
   string s="a"+"b"+"//c "+(string)n+" "+(n>2 ? "big" : "small");
   Print(s," ",(int)'\n');
  }
