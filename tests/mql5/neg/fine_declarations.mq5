// fine: 3 4 2 1.5 9
struct SPair
  {
   int               first,second;
  };
void OnStart()
  {
   int    a[3],b=4,c[]={1,2};
   double d[2]={1.5,2.5};
   SPair  pair;
   pair.first=4;
   pair.second=5;
   Print(ArraySize(a)," ",b," ",ArraySize(c)," ",d[0]," ",pair.first+pair.second);
  }
