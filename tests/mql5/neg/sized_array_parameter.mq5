// translate: an array parameter has no size
void Show(const double &values[4])
  {
   Print(values[0]);
  }
void OnStart()
  {
   double values[4]={1.0,2.0,3.0,4.0};
   Show(values);
  }
