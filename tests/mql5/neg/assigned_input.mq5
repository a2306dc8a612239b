// compile: InpCount
input int InpCount=5;
void OnStart()
  {
   InpCount=6;
  }
