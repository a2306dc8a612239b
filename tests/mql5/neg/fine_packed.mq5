// fine: 21 bytes
struct SPacked
  {
   uchar             small;
   double            large;
   int               numbers[3];
  };
void OnStart()
  {
   Print(sizeof(SPacked)," bytes");
  }
