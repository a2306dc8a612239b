// compile: operator=
void OnStart()
  {
   double a[];
   double b[];
   a=b;
  }
